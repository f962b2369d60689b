"""The classifier for notebooks: verbs of scikit-learn and of river, frames with categories and nulls.

    from npstream import NPClassifier

    classifier = NPClassifier(tau=0.01).fit(frame, labels)   # pandas, Polars, arrays, lists of rows
    alarms = classifier.predict(later)

It holds one `Model` and knows what each column is; neither library is needed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from npstream.arrays import Features, Floats, Signs
from npstream.codec.event import EventConfig
from npstream.codec.features import Feature, column_buckets, column_names, column_of
from npstream.codec.table import TableReader
from npstream.data.frames import Frame, columns_of_frame, columns_of_observation, columns_of_rows, infer_features
from npstream.errors import DataError, SettingsError, suggest
from npstream.model import Model, Params

_SHAPE = ("d", "buckets")
"""What the columns say."""
DEFAULTS: dict[str, Any] = {
    rule.name: None if rule.default is MISSING else rule.default for rule in fields(Params) if rule.name not in _SHAPE
}
"""The parameters that can be given, with their defaults; None is the preset's own."""


class NPClassifier:
    """Holds the false-positive rate `tau` and detects as much as it can; learns in one pass, in the order of the rows.

    `features` are what the model sees, in their order: a mapping as in `events.features` of the settings, or names
    of columns. Columns whose kind is not given get it from the type of the first data: numbers, flags (booleans),
    categories (text); None, NaN and NA are missing. From then on the list is fixed, and a frame is read by column name,
    rows and arrays in the order of the list. `target` is the label to detect where labels are not 0/1, -1/1 or truths.
    Other parameters are those of `npstream.model.Params`. Data that cannot be used raise `DataError`, a ValueError.
    """

    _estimator_type = "classifier"

    model_: Model
    """What was learned."""
    features_: tuple[Feature, ...] | None
    """What each column is, None for arrays of numbers."""
    classes_: npt.NDArray[Any]
    """The label of non-targets and that of targets."""
    n_features_in_: int
    """Columns of the data."""
    feature_names_in_: npt.NDArray[np.object_]
    """Their names, where they have names."""

    def __init__(
        self,
        features: Mapping[str, Any] | Sequence[str] | Sequence[Feature] | None = None,
        *,
        target: Any = None,
        **params: Any,
    ) -> None:
        self.features = features
        self.target = target
        for name, value in (DEFAULTS | params).items():
            self._set(name, value)

    # The verbs of scikit-learn

    def fit(self, X: Any, y: Any) -> Self:
        """Start over, and learn from rows in order."""
        self._forget()
        return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: Any, classes: Sequence[Any] | None = None) -> Self:
        """Go on learning; `classes` are needed only when the first labels do not show what the others are."""
        self._learn(X, np.asarray(y), classes)
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The label of each row: that of targets where the model would raise an alarm. Changes nothing."""
        return self._labels(self._fitted().decide_many(self._rows(X)))

    def decision_function(self, X: Any) -> Floats:
        """How far each score is above the threshold. An alarm needs more: warm-up and budget may withhold it."""
        model = self._fitted()
        return model.score_many(self._rows(X)) - model.threshold

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What the constructor was given."""
        return {name: getattr(self, name) for name in ("features", "target", *DEFAULTS)}

    def set_params(self, **params: Any) -> Self:
        """Change parameters; those that a live model cannot change need `fit`."""
        for name, value in params.items():
            self._set(name, value)
        return self

    # The verbs of river

    def learn_one(self, x: Mapping[str, Any], y: Any) -> None:
        """Learn from one observation, a dict by name."""
        self._learn(x, np.asarray([y]), None)

    def predict_one(self, x: Mapping[str, Any]) -> Any:
        """The label of one observation; before anything was learned, None."""
        return self._labels(self.model_.decide_many(self._rows(x))).tolist()[0] if hasattr(self, "model_") else None

    def score_one(self, x: Mapping[str, Any]) -> float:
        """`decision_function` of one observation; before anything was learned, 0."""
        return float(self.decision_function(x)[0]) if hasattr(self, "model_") else 0.0

    # What scikit-learn asks for

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a model."""
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn may expect; only it calls this."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(multi_class=False),
            input_tags=InputTags(allow_nan=True, categorical=True, string=True),
        )

    def __repr__(self) -> str:
        given = {name: value for name, value in self.get_params().items() if value != DEFAULTS.get(name)}
        return f"NPClassifier({', '.join(f'{name}={value!r:.60}' for name, value in given.items())})"

    # Parameters

    def _set(self, name: str, value: Any) -> None:
        if name not in ("features", "target", *DEFAULTS):
            raise SettingsError([f"{name}: unknown parameter; {suggest(name, ['features', 'target', *DEFAULTS])}"])
        setattr(self, name, value)

    def _params(self, **shape: Any) -> Params:
        given = {name: getattr(self, name) for name in DEFAULTS}
        return Params(**{name: value for name, value in given.items() if value is not None}, **shape)

    # Learning

    def _learn(self, X: Any, labels: npt.NDArray[Any], classes: Sequence[Any] | None) -> None:
        if labels.ndim != 1:
            raise DataError(f"y: shape {labels.shape} is not (rows,), one label for each row")
        first = not hasattr(self, "model_")
        try:
            if first:
                self._begin(X, labels, classes)
            now = self._params(d=self.model_.params.d, buckets=self.model_.params.buckets)
            if now != self.model_.params:  # set_params has changed some
                self.model_ = self.model_.with_params(now)
            self.model_.learn_many(self._rows(X), self._signs(labels))
        except Exception:
            if first:  # nothing is fixed by data that could not be learned from
                self._forget()
            raise

    def _begin(self, X: Any, labels: npt.NDArray[Any], classes: Sequence[Any] | None) -> None:
        self._set_classes(labels if classes is None else np.asarray(classes))
        external = self.get_params()["preset"] == "external"
        self.features_ = None if external else self._first_features(X)
        if self.features_ is None:
            self.n_features_in_ = 1 if external else _width(X)
            shape: dict[str, Any] = {"d": 0 if external else self.n_features_in_}
        else:
            self.feature_names_in_ = np.array(self._names(), object)
            self.n_features_in_ = len(self.feature_names_in_)
            shape = {"d": len(column_names(self.features_)), "buckets": column_buckets(self.features_)}
        self.model_ = Model.create(self._params(**shape))

    def _forget(self) -> None:
        for name in [name for name in self.__dict__ if name.endswith("_")]:
            del self.__dict__[name]

    # Columns

    def _first_features(self, X: Any) -> tuple[Feature, ...] | None:
        """The list by what is given, else by the data; None for rows of numbers without names."""
        names: Sequence[str] | None = None
        if self.features is not None:
            # Late: the settings load the worker and its Kafka client.
            from npstream.settings.features_section import read_features
            from npstream.settings.section import Problems

            try:
                listed = read_features(self.features if isinstance(self.features, Mapping) else tuple(self.features))
            except Problems as error:
                raise SettingsError(
                    [f"features{each if each[:1] in '.:' else f'.{each}'}" for each in error.problems]
                ) from None
            mapped = tuple(each for each in listed or () if isinstance(each, Feature))
            if mapped:
                return mapped
            names = tuple(str(name) for name in listed or ())
        columns = self._first_columns(X, names)
        return None if columns is None else infer_features(columns)

    def _first_columns(self, X: Any, names: Sequence[str] | None) -> Frame | None:
        if isinstance(X, Mapping):
            given: Frame = columns_of_observation(X, [f'["{name}"]' for name in names or X])
        else:
            found = columns_of_frame(X)
            if found is None:
                if names is None:
                    return None
                found = columns_of_rows(X, names)
            given = found
        _require(given, names or ())
        return {name: given[name] for name in names} if names is not None else given

    def _names(self) -> list[str]:
        """The columns that the features are read from, in their order."""
        return [*dict.fromkeys(column_of(feature.path) for feature in self.features_ or ())]

    def _rows(self, X: Any) -> Features | Any:
        """The columns of the model, or what was given where it is no table."""
        if self.features_ is None:
            return X
        if isinstance(X, Mapping):
            columns: Frame = columns_of_observation(X, [feature.path for feature in self.features_])
        else:
            found = columns_of_frame(X)
            columns = columns_of_rows(X, self._names()) if found is None else found
        _require(columns, self._names())
        config = EventConfig(d=self.model_.params.d, mapping=self.features_, key=self.model_.params.seed)
        return TableReader(config).features(columns)

    # Labels

    def _set_classes(self, labels: npt.NDArray[Any]) -> None:
        known = {*labels.tolist()}
        if self.target is not None:
            others = [each for each in dict.fromkeys(labels.tolist()) if each != self.target]
            if len(others) > 1:
                raise DataError(f"y: {_some(others)} beside the target {self.target!r}; there are two classes")
            pair = [others[0] if others else None, self.target]
        elif known <= {0, 1}:
            pair = [False, True] if labels.dtype.kind == "b" else [0, 1]
        elif known <= {-1, 1}:
            pair = [-1, 1]
        else:
            raise DataError(
                f"y: {_some([*known])}: which is the target? Give target=..., or labels 0/1, -1/1 or truths"
            )
        self.classes_ = np.array(pair) if None not in pair else np.array(pair, object)

    def _signs(self, labels: npt.NDArray[Any]) -> Signs:
        other, target = self.classes_.tolist()
        if other is None and (others := [each for each in labels.tolist() if each != target]):
            self.classes_ = np.array([others[0], target])
            other = others[0]
        unknown = [each for each in labels.tolist() if each not in (other, target)]
        if unknown:
            raise DataError(f"y: {_some(unknown)} is neither {other!r} nor the target {target!r}")
        return np.where(labels == target, 1, -1).astype(np.int8)

    def _labels(self, signs: Signs) -> npt.NDArray[Any]:
        return self.classes_[(signs > 0).astype(np.int64)]

    def _fitted(self) -> Model:
        if not hasattr(self, "model_"):
            raise DataError("nothing was learned yet; call fit or partial_fit first")
        return self.model_


def _require(columns: Frame, names: Sequence[str]) -> None:
    missing = [name for name in names if name not in columns]
    if missing:
        raise DataError(
            f"X: no column {', '.join(missing)}; wanted are {', '.join(names)}; there are {', '.join(columns)}"
        )


def _width(X: Any) -> int:
    shape = np.shape(X)
    if len(shape) != 2:
        raise DataError(f"X: shape {shape} is not (rows, columns)")
    return int(shape[1])


def _some(values: Sequence[Any]) -> str:
    return ", ".join(repr(value) for value in [*dict.fromkeys(values)][:4])
