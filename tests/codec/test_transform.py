"""A function of the user's in front of the mapping: its failures are bad events, another source is refused."""

from pathlib import Path
from typing import Any

import pytest

from npstream.codec.decoder import EventConfig, EventDecoder
from npstream.codec.features import Feature, Transform
from npstream.codec.sample import unstable
from npstream.codec.transform import transform_of
from npstream.errors import StateCorrupt
from tests.codec.builders import event, reasons, rows

SOURCE = """
from itertools import count

numbers = count()


def good(event):
    return {"id": event["name"], "a": event["parts"][0] + event["parts"][1]}


def impure(event):
    return {"a": next(numbers)}


def wrong(event):
    return [1]


def failing(event):
    raise ValueError(f"at {id(event)}")


constant = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that can be imported."""
    name = f"functions_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def config(transform: Transform) -> EventConfig:
    """Events with one number that a function makes."""
    return EventConfig(d=1, mapping=(Feature(name="a", kind="number", path="a"),), transform=transform)


def test_paths_read_what_the_function_returns(module: str) -> None:
    """In large batches as alone; the id too."""
    decoder = EventDecoder(config(transform_of(f"{module}:good")))
    batch = [event(name=f"e{i}", parts=[i, 0.5]) for i in range(10)]

    assert rows(decoder.decode(batch)) == [(0, f"e{i}", (i + 0.5,), 0.0, 0, None, None) for i in range(10)]
    assert reasons(decoder.decode([event(name="e", parts=[1]), event(name="e", parts=["1", "2"])])) == [
        "transform_failed",
        "not_number",
    ]


def test_what_a_function_raises_or_returns_wrongly_is_a_bad_event(module: str) -> None:
    """Named by function and type, never by a message that may differ the next time."""
    found: list[Any] = []
    for name in ("failing", "wrong"):
        decoded = EventDecoder(config(transform_of(f"{module}:{name}"))).decode([event(id="e", a=1)])
        found.append((decoded.errors[0].reason, decoded.errors[0].detail, decoded.bad_ids[0]))

    assert found == [
        ("transform_failed", f"{module}:failing raised ValueError", "e"),
        ("transform_failed", f"{module}:wrong returned 'list', not a dict", "e"),
    ]


def test_another_source_does_not_decide_again(module: str) -> None:
    """Events are not recomputed with a function that did not decide them; the message says what to do."""
    decoder = EventDecoder(config(Transform(f"{module}:good", "0" * 16)))

    with pytest.raises(StateCorrupt, match="old code once more"):
        decoder.decode([event(name="e", parts=[1, 2])])
    gone = EventDecoder(config(Transform("no_such_module_anywhere:good", "0" * 16)))
    with pytest.raises(StateCorrupt, match="cannot import no_such_module_anywhere"):
        gone.decode([event(name="e", parts=[1, 2])])


def test_a_function_that_is_not_pure_is_found(module: str) -> None:
    """It is run twice on the same events."""
    sample = [event(name="e", parts=[1, 2])]

    assert unstable(sample, config(transform_of(f"{module}:good"))) is None
    assert "is not pure: the event at offset 0 gave {'a': 0}, then {'a': 1}" in str(
        unstable(sample, config(transform_of(f"{module}:impure")))
    )


@pytest.mark.parametrize("name", ["{}", "{}:", ":good", "{}:missing", "{}:constant", "no_such_module_anywhere:f"])
def test_what_is_no_function_is_refused(module: str, name: str) -> None:
    """With the reason."""
    with pytest.raises(ValueError, match=r"must be package|has no function|cannot import"):
        transform_of(name.format(module))
