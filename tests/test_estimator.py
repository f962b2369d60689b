"""The classifier as a notebook user meets it: frames by column name, in the verbs of scikit-learn and river."""

import copy
import pickle
import re
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pandas
import polars
import pyarrow
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from npstream import NPClassifier
from npstream.codec.decoder import EventDecoder
from npstream.codec.features import column_of
from npstream.errors import DataError, SettingsError
from npstream.model import Model, Params
from npstream.records import Record
from npstream.settings import events_config
from tests.data.payments_table import MAPPED, Row, documents, rows, values
from tests.model.streams import shells

SMALL: dict[str, Any] = {"D": 8, "tau": 0.1, "seed": 7}
TABLE = rows(400)
LABELS = [row["fraud"] for row in TABLE]
COLUMNS = [name for name in TABLE[0] if name not in ("payment_id", "fraud", "note", "created_at")]
"""Two numbers, two categories (one of integers) and a flag; all but two have missing values."""


def pandas_frame(table: list[Row], names: list[str]) -> Any:
    """As pandas makes it of rows: missing values make floats and objects of columns."""
    return pandas.DataFrame({name: [row[name] for row in table] for name in names})


def polars_frame(table: list[Row], names: list[str]) -> Any:
    """With nulls of its own."""
    return polars.DataFrame({name: [row[name] for row in table] for name in names})


def nullable_frame(table: list[Row], names: list[str]) -> Any:
    """With pandas' nullable types, and text as a categorical."""
    frame = pandas_frame(table, names).convert_dtypes()
    return frame.astype({name: "category" for name in names if name == "card.country"})


def arrow_table(table: list[Row], names: list[str]) -> Any:
    """As pyarrow has it."""
    return pyarrow.table({name: [row[name] for row in table] for name in names})


FRAMES = [pandas_frame, nullable_frame, polars_frame, arrow_table]


def as_text(names: list[str]) -> dict[str, Any]:
    """The mapping that the types of the frames mean."""
    kinds = {"card.country": "category", "auth.three_ds": "flag"}
    return {
        name: {kinds.get(name, "number"): f'["{name}"]'} | ({} if name in kinds else {"missing": "allow"})
        for name in names
    }


def worker_model(features: dict[str, Any], events: list[bytes]) -> str:
    """The digest of a model that learned what the worker's own decoder read."""
    using = events_config({"events": {**MAPPED, "features": features}, "model": SMALL})
    decoded = EventDecoder(using).decode([Record(i, 1, None, value, ()) for i, value in enumerate(events)])
    assert decoded.errors == {}
    buckets = tuple(feature.buckets for feature in using.mapping or () for _ in feature.columns)
    return Model.create(Params(d=using.d, buckets=buckets, **SMALL)).learn_many(decoded.x, decoded.y).digest()


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_is_what_the_worker_would_read(frame: Any) -> None:
    """With the mapping of the settings, every kind of frame gives the model of the events, bit for bit."""
    features = MAPPED["features"]
    names = [*dict.fromkeys(column_of(next(iter(entry.values()))) for entry in features.values())]

    given = frame(TABLE, list(reversed(names)))
    fitted = NPClassifier(features, **SMALL).fit(given, LABELS)

    assert fitted.model_.digest() == worker_model(features, values(TABLE))
    assert fitted.feature_names_in_.tolist() == names
    assert fitted.predict(given).tolist().count(True) > 20


@pytest.mark.parametrize("frame", FRAMES)
def test_types_say_what_a_column_is(frame: Any) -> None:
    """Text is a category, a truth a flag, the rest numbers; null is missing: as if a mapping had said so."""
    events = [orjson.dumps({**document, **row}) for document, row in zip(documents(TABLE), TABLE, strict=True)]

    fitted = NPClassifier(**SMALL).fit(frame(TABLE, COLUMNS), LABELS)

    assert {each.name: each.kind for each in fitted.features_ or ()} == {
        "amount": "number",
        "velocity_1h": "number",
        "card.country": "category",
        "merchant_mcc": "number",
        "auth.three_ds": "flag",
    }
    assert fitted.model_.digest() == worker_model(as_text(COLUMNS), events)


def test_times_are_read_by_their_type() -> None:
    """Timestamps with and without a zone, text and numbers are one moment."""
    features = {"hour": {"time": "at", "cycle": "day"}, "a": {"number": "a"}}
    moments = [datetime(2026, 5, day, day % 24, 30, tzinfo=UTC) for day in range(1, 29)]
    a, y = [float(i) for i in range(28)], [i % 2 for i in range(28)]
    zoned = pandas.DataFrame({"a": a, "at": pandas.Series(moments)})
    held = [
        zoned,
        zoned.assign(at=zoned["at"].dt.tz_convert("Asia/Tokyo")),
        zoned.assign(at=zoned["at"].dt.tz_localize(None)),
        zoned.assign(at=[moment.isoformat() for moment in moments]),
        zoned.assign(at=[moment.timestamp() for moment in moments]),
        polars.DataFrame({"a": a, "at": moments}),
        [[moment.isoformat(), number] for moment, number in zip(moments, a, strict=True)],
    ]

    assert len({NPClassifier(features, **SMALL).fit(each, y).model_.digest() for each in held}) == 1
    with pytest.raises(DataError, match=re.escape("X: column at holds times; leave it out, or say what part of them")):
        NPClassifier().fit(zoned, y)


def test_rows_are_in_the_order_of_the_list() -> None:
    """Lists and arrays have no names: their columns are the features in their order, never sorted by name."""
    names = ["velocity", "amount"]
    x, y = shells(200, 2, seed=1)
    frame = pandas.DataFrame(x, columns=names)

    by_name = NPClassifier(names, **SMALL).fit(frame[["amount", "velocity"]], y)
    by_place = NPClassifier(names, **SMALL).fit(x, y)
    as_lists = NPClassifier(names, **SMALL).fit(x.tolist(), y)
    plain = NPClassifier(**SMALL).fit(x, y)

    assert by_name.model_.digest() == by_place.model_.digest() == as_lists.model_.digest() == plain.model_.digest()
    assert by_name.predict(x).tolist() == by_name.predict(frame[["amount", "velocity"]]).tolist()
    mixed = [["DE", 1.0, None], ["FR", None, True]] * 20
    listed = NPClassifier(["country", "amount", "three_ds"], **SMALL).fit(mixed, [0, 1] * 20)
    assert [each.kind for each in listed.features_ or ()] == ["category", "number", "flag"]


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_that_lacks_a_column_is_refused(frame: Any) -> None:
    """The message names it, and nothing is learned; columns that nobody asked for are ignored."""
    fitted = NPClassifier(**SMALL).fit(frame(TABLE, COLUMNS), LABELS)
    before = fitted.model_.digest()

    for verb in (fitted.predict, fitted.decision_function, lambda X: fitted.partial_fit(X, LABELS)):
        with pytest.raises(
            DataError, match=r"X: no column card\.country; wanted are amount, velocity_1h, card\.country"
        ):
            verb(frame(TABLE, [name for name in COLUMNS if name != "card.country"]))
    more = fitted.predict(frame(TABLE, ["note", *reversed(COLUMNS)]))

    assert more.tolist() == fitted.predict(frame(TABLE, COLUMNS)).tolist()
    assert fitted.model_.digest() == before


def test_kinds_stay_what_they_were() -> None:
    """A column that was a number and is text now is refused, by row and column."""
    fitted = NPClassifier(**SMALL).fit(pandas_frame(TABLE, COLUMNS), LABELS)

    with pytest.raises(DataError, match="row 1, column amount: amount: amount is 'dear'"):
        fitted.predict(pandas_frame([{**TABLE[0], "amount": "dear"}], COLUMNS))
    with pytest.raises(DataError, match=r"row 2, column merchant_mcc: merchant_mcc: merchant_mcc is NaN or infinite"):
        fitted.predict(pandas_frame([TABLE[0], {**TABLE[1], "merchant_mcc": np.inf}], COLUMNS))


def test_parts_are_the_whole() -> None:
    """Learning in parts, and one by one as river does, ends in the state of learning at once."""
    frame = pandas_frame(TABLE, COLUMNS)
    whole, parts, singly = (NPClassifier(**SMALL) for _ in range(3))
    whole.fit(frame, LABELS)
    for begin in range(0, len(TABLE), 90):
        parts.partial_fit(frame[begin : begin + 90], LABELS[begin : begin + 90])
    # The first observation shows what each value is.
    singly.features = whole.features_
    for row in TABLE:
        singly.learn_one({name: row[name] for name in COLUMNS}, row["fraud"])

    assert parts.model_.digest() == whole.model_.digest() == singly.model_.digest()
    scores, found = whole.decision_function(frame), whole.predict(frame)
    for at in range(20):
        row = {name: TABLE[at][name] for name in COLUMNS}
        assert (singly.score_one(row), singly.predict_one(row)) == (scores[at], bool(found[at]))


def test_an_observation_may_be_nested() -> None:
    """A dict is read as an event is: by path, or flat by the path's name; what is not there is missing."""
    features = {"country": {"category": "card.country"}, "amount": {"number": "amount", "missing": "allow"}}
    fitted = NPClassifier(features, **SMALL).fit(pandas_frame(TABLE, COLUMNS), LABELS)

    assert fitted.score_one({"card": {"country": "DE"}, "amount": 3}) == fitted.score_one(
        {"amount": 3.0, "card.country": "DE", "more": object()}
    )
    assert fitted.score_one({"card": None}) == fitted.score_one({}) != fitted.score_one({"amount": 3})


def test_one_by_one_from_nothing() -> None:
    """river's loop: predict, then learn; kinds and order come from the first observation."""
    classifier = NPClassifier(**SMALL)
    assert (classifier.predict_one({"b": 1}), classifier.score_one({"b": 1})) == (None, 0.0)
    for i in range(300):
        classifier.learn_one({"b": float(i % 7), "a": "x" if i % 7 > 4 else "y"}, i % 7 > 4)

    assert classifier.feature_names_in_.tolist() == ["b", "a"]
    assert classifier.predict_one({"a": "x", "b": 6.0}) is True
    assert classifier.predict_one({"a": "y", "b": 1.0}) is False
    with pytest.raises(DataError, match=r"X: column a has no value; say what it is, for instance features="):
        NPClassifier().learn_one({"a": None}, 1)


@pytest.mark.parametrize(
    ("labels", "target", "classes"),
    [
        ([0, 1], None, [0, 1]),
        ([-1, 1], None, [-1, 1]),
        ([False, True], None, [False, True]),
        (["ok", "fraud"], "fraud", ["ok", "fraud"]),
        ([2, 5], 2, [5, 2]),
        ([1, 1], None, [0, 1]),
    ],
)
def test_labels_come_back_as_they_were_given(labels: list[Any], target: Any, classes: list[Any]) -> None:
    """What is predicted is a label of the user's, and the second class is the target."""
    x, sign = shells(400, 2, seed=3)
    y = [labels[int(each > 0)] for each in sign]

    fitted = NPClassifier(target=target, **SMALL).fit(x, y)

    assert fitted.classes_.tolist() == classes
    assert {*fitted.predict(x).tolist()} <= {*classes}
    with pytest.raises(DataError, match="y: 'other' is neither"):
        fitted.partial_fit(x[:1], ["other"])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", "b"], "which is the target? Give target="),
        ([0, 1, 1], "y: shape (3,) is not (2,), one label for each row"),
        ([0, -1], "which is the target?"),
        ([[0], [1]], "y: shape (2, 1) is not (rows,)"),
    ],
)
def test_labels_that_cannot_be_used_are_refused(y: Any, message: str) -> None:
    """As data errors, which are ValueErrors; and nothing is fixed by them."""
    classifier = NPClassifier()
    with pytest.raises(ValueError, match=re.escape(message)):
        classifier.fit([[1.0], [2.0]], y)

    assert not hasattr(classifier, "model_")
    with pytest.raises(DataError, match="nothing was learned yet; call fit"):
        classifier.predict([[1.0]])


def test_parameters_are_checked_by_name() -> None:
    """An unknown one at once, a wrong value at fit; a mapping with every problem. These are settings, not data."""
    with pytest.raises(SettingsError, match=r"taw: unknown parameter; did you mean tau\?"):
        NPClassifier(taw=0.1)
    with pytest.raises(SettingsError, match="tau: "):
        NPClassifier(tau=2.0).fit([[1.0]], [1])
    with pytest.raises(SettingsError, match=re.escape("features.a.scale: 'exp' must be none or log")):
        NPClassifier({"a": {"number": "a", "scale": "exp"}}).fit([[1.0]], [1])


def test_parameters_can_change_while_it_learns() -> None:
    """What a live model can change takes effect with the next rows; what it cannot is refused."""
    x, y = shells(100, 2, seed=1)
    fitted = NPClassifier(**SMALL).fit(x, y)
    fitted.set_params(tau=0.2).partial_fit(x, y)

    assert (fitted.model_.params.tau, fitted.model_.t) == (0.2, 200)
    with pytest.raises(SettingsError, match="D: "):
        fitted.set_params(D=16).partial_fit(x, y)
    assert fitted.fit(x, y).model_.params.D == 16


def test_it_is_an_estimator_of_scikit_learn() -> None:
    """clone, pipelines and cross-validation work as with its own."""
    x, y = shells(600, 2, seed=2)
    classifier = NPClassifier(**SMALL)
    copied = clone(classifier)

    assert copied.get_params() == classifier.get_params()
    assert is_classifier(classifier)
    with pytest.raises(NotFittedError):
        check_is_fitted(classifier)
    check_is_fitted(copied.fit(x, y))
    pipeline = make_pipeline(StandardScaler(), NPClassifier(**SMALL)).set_params(npclassifier__tau=0.3).fit(x, y)
    assert pipeline[-1].model_.params.tau == 0.3
    assert roc_auc_score(y, pipeline.decision_function(x)) > 0.7
    assert len(cross_val_score(classifier, x, y, cv=3, scoring="roc_auc", error_score="raise")) == 3
    assert str(clone(pipeline)[-1]) == "NPClassifier(D=8, tau=0.3, seed=7)"


def test_it_can_be_kept() -> None:
    """Pickled or copied, it goes on as if nothing had happened."""
    frame = pandas_frame(TABLE, COLUMNS)
    fitted = NPClassifier(**SMALL).fit(frame[:200], LABELS[:200])
    others = [pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)]

    digests = {each.partial_fit(frame[200:], LABELS[200:]).model_.digest() for each in [fitted, *others]}

    assert len(digests) == 1


def test_scores_of_another_model() -> None:
    """With preset external the data are scores."""
    scores: npt.NDArray[np.float64] = np.linspace(0, 1, 400)
    fitted = NPClassifier(preset="external", tau=0.1).fit(scores, scores > 0.9)

    assert fitted.predict([2.0, -2.0]).tolist() == [True, False]


def test_no_library_is_loaded_for_it() -> None:
    """An array needs neither pandas, Polars, pyarrow nor scikit-learn, and no Kafka client."""
    program = (
        "import sys\nfrom npstream import NPClassifier\n"
        "NPClassifier(D=2).fit([[1.0], [2.0]], [0, 1]).predict([[1.0]])\n"
        "print(*{'pandas', 'polars', 'pyarrow', 'sklearn', 'confluent_kafka'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=170, check=False)

    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
