"""npstream: exactly-once online Neyman-Pearson classification on Kafka streams."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npstream.estimator import NPClassifier

__all__ = ["NPClassifier", "__version__"]

__version__ = "0.1.0"

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """`NPClassifier`, loaded when it is asked for: a worker does without."""
        if name != "NPClassifier":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from npstream.estimator import NPClassifier

        return NPClassifier
