"""Print the state digest of a fixed run of every preset, for comparison between processes and processors."""

from npstream.model import Model, Params
from tests.model.streams import at_once, delayed

RUNS = {
    "plus": Params(d=7, D=37, tau=0.05, seed=11),
    "plus-one-class": Params(d=3, D=21, tau=0.1, one_class=True),
    "plus-mixed": Params(d=6, D=21, tau=0.1, buckets=(0, 8, 0, 64, 2, 0)),
    "paper": Params(preset="paper", d=7, D=37, tau=0.05, input="unit"),
    "external": Params(preset="external", tau=0.02),
    "plus-alarm-rate": Params(d=6, D=21, tau=0.1, buckets=(0, 8, 0, 64, 2, 0), control="alarm_rate"),
}


def digest(name: str, sizes: list[int] | None = None) -> str:
    """The digest after 1,500 events with labels and 1,500 with late ones, in batches of the given sizes."""
    params = RUNS[name]
    model = Model.create(params, stream=2)
    missing = 0.1 if params.buckets else 0.0
    at_once(params, 1500, seed=1, missing=missing).run(model, sizes=sizes)
    delayed(params, 1500, seed=2, missing=missing).run(model, sizes=sizes)
    return model.digest()


if __name__ == "__main__":
    for name in RUNS:
        print(name, digest(name))
