"""`events.transform`: a function of the user's that turns a parsed event into the one that the paths read.

Pure by contract: the same event must give the same result on every machine and
at every time, or a replay after a crash stops at other outputs. The hash of its
module's source is part of the settings in every snapshot, so that events are
never replayed with another function than the one that decided them.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from npstream.codec.event import shown
from npstream.codec.features import Transform
from npstream.errors import BadEvent, StateCorrupt

Extract = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class LoadedTransform:
    """The function as this process has it."""

    made_for: Transform
    found: Transform
    function: Extract

    def apply(self, document: object) -> object:
        """What the paths read; a `BadEvent` when the function fails. Raises `StateCorrupt` when it is another one."""
        if self.made_for.source != self.found.source:
            raise StateCorrupt(
                f"these events were decided with source {self.made_for.source} of {self.found.name}, this process has "
                f"source {self.found.source}: they cannot be recomputed with another function. Start the worker with "
                "the old code once more and stop it cleanly, then deploy the new code"
            )
        if not isinstance(document, dict):
            return document  # refused by the mapping, as it came
        try:
            made = self.function(document)
        except Exception as error:  # whatever a user's function raises is about this event
            # Not the message: it may hold addresses or clocks, and a replay must give the same bytes.
            return BadEvent("transform_failed", f"{self.found.name} raised {type(error).__name__}")
        if isinstance(made, dict):
            return made
        return BadEvent("transform_failed", f"{self.found.name} returned {shown(type(made).__name__)}, not a dict")


def load_transform(transform: Transform) -> LoadedTransform:
    """The function that a configuration names. Raises `StateCorrupt` when it cannot be had."""
    try:
        function, source = _load(transform.name)
    except ValueError as error:
        raise StateCorrupt(f"these events were decided with events.transform {transform.name}: {error}") from None
    return LoadedTransform(transform, Transform(transform.name, source), function)


def transform_of(name: str) -> Transform:
    """A function by its name `package.module:function`, with the hash of its source now. Raises `ValueError`."""
    return Transform(name, _load(name)[1])


@cache
def _load(name: str) -> tuple[Extract, str]:
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise ValueError(f"{name!r} must be package.module:function")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # importing runs the user's code
        raise ValueError(
            f"cannot import {module_name}: {type(error).__name__}: {error}; install it beside npstream, or put its "
            "folder into PYTHONPATH"
        ) from None
    function = getattr(module, attribute, None)
    if not callable(function):
        raise ValueError(f"{module_name} has no function {attribute}")
    if not module.__file__:
        raise ValueError(f"{module_name} is a folder without code; name the module that holds {attribute}")
    return function, blake2b(Path(module.__file__).read_bytes(), digest_size=8).hexdigest()
