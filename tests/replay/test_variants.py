"""Which settings are compared, and under what names."""

from pathlib import Path

import pytest

from npstream.errors import UsageError
from npstream.replay.variants import Variant, named, variants


def test_lists_make_a_product() -> None:
    """Two rates and two presets are four runs, named by what differs between them."""
    found = variants(["model.tau=0.01,0.05", "labels.buffer_max=7", "model.preset=plus,paper"])

    assert [variant.name for variant in found] == [
        "tau=0.01 preset=plus",
        "tau=0.01 preset=paper",
        "tau=0.05 preset=plus",
        "tau=0.05 preset=paper",
    ]
    assert found[1].assignments == ("model.tau=0.01", "labels.buffer_max=7", "model.preset=paper")


def test_without_lists_there_is_one_run() -> None:
    """Nothing to compare is one run with the settings as they are."""
    assert variants([]) == [Variant("run", ())]


def test_a_yaml_list_is_one_value() -> None:
    """Commas inside brackets do not compare: events.features takes a list."""
    assert variants(["events.features=[a,b]"]) == [Variant("run", ("events.features=[a,b]",))]


@pytest.mark.parametrize("text", ["model.tau", "=3", ""])
def test_what_is_no_assignment_is_refused(text: str) -> None:
    """The message shows the form."""
    with pytest.raises(UsageError, match="must be key=value"):
        variants([text])


def test_names_of_runs_differ() -> None:
    """Files of the same name in two folders are distinguished by their paths."""
    found = named([Path("a/x.yaml"), Path("b/x.yaml")], variants(["model.tau=1,2"]))

    assert [name for name, _, _ in found] == ["a/x.yaml tau=1", "b/x.yaml tau=1", "a/x.yaml tau=2", "b/x.yaml tau=2"]
    assert [name for name, _, _ in named([Path("a/x.yaml"), Path("y.yaml")], variants([]))] == ["x", "y"]
    assert [name for name, _, _ in named([Path("a/x.yaml")], variants([]))] == ["run"]
