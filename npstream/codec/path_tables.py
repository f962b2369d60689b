"""The paths of a mapping as tables for compiled code: a tree of the steps, and what is wanted at its nodes."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from npstream.codec.event import EventConfig
from npstream.codec.features import Steps, steps_of

ID, LABEL, KIND, NUMBER, CATEGORY, FLAG, TIME = range(7)
"""What is wanted of the value at a node."""

_OF_KIND = {"number": NUMBER, "category": CATEGORY, "flag": FLAG, "time": TIME}

Numbers = NDArray[np.int32]


class PathTables(NamedTuple):
    """Node 0 is the event itself.

    Edges of node n are `edges[n]` to `edges[n + 1]`: each leads to `edge_node` by
    a key, `keys` from `key_begin` and `key_size` long, or by an index (`key_size`
    -1). Wants of node n are `wants[n]` to `wants[n + 1]`: `want` is one of the
    constants above, `feature` the place of its value. `vector` is the number of
    values in the array at a node, -1 where there is no such array.
    """

    edges: Numbers
    edge_node: Numbers
    edge_index: Numbers
    key_begin: Numbers
    key_size: Numbers
    keys: NDArray[np.uint8]
    wants: Numbers
    want: Numbers
    feature: Numbers
    vector: Numbers
    may_miss: NDArray[np.bool_]
    label_numbers: NDArray[np.float64]
    label_number_signs: NDArray[np.int8]
    label_texts: NDArray[np.uint8]
    label_text_ends: Numbers
    label_text_signs: NDArray[np.int8]


class _Node:
    def __init__(self) -> None:
        self.children: dict[str | int, _Node] = {}
        self.wants: list[tuple[int, int]] = []
        self.vector = -1
        self.number = 0


def tables_of(config: EventConfig) -> PathTables:
    """The tables of one configuration."""
    root = _Node()
    for steps, want, feature in _wanted(config):
        _descend(root, steps).wants.append((want, feature))
    if config.mapping is None and not config.external:
        _descend(root, ("x",)).vector = config.d
    nodes = [*_numbered(root)]
    edges = [(step, child) for node in nodes for step, child in node.children.items()]
    keys = [step.encode() if isinstance(step, str) else b"" for step, _ in edges]
    wants = [want for node in nodes for want in node.wants]
    signs = config.label.signs
    numbers = [(float(value), sign) for value, sign in signs.items() if not isinstance(value, str)]
    texts = [(value.encode(), sign) for value, sign in signs.items() if isinstance(value, str)]
    return PathTables(
        edges=_starts([len(node.children) for node in nodes]),
        edge_node=_ints([child.number for _, child in edges]),
        edge_index=_ints([-1 if isinstance(step, str) else step for step, _ in edges]),
        key_begin=_starts([len(key) for key in keys]),
        key_size=_ints([len(key) if _is_plain(step) else -1 for key, (step, _) in zip(keys, edges, strict=True)]),
        keys=_bytes(keys),
        wants=_starts([len(node.wants) for node in nodes]),
        want=_ints([want for want, _ in wants]),
        feature=_ints([feature for _, feature in wants]),
        vector=_ints([node.vector for node in nodes]),
        may_miss=np.array([each.may_miss for each in config.mapping or ()] or [False] * config.width),
        label_numbers=np.array([value for value, _ in numbers], np.float64),
        label_number_signs=np.array([sign for _, sign in numbers], np.int8),
        label_texts=_bytes([text for text, _ in texts]),
        label_text_ends=_ints(np.cumsum([len(text) for text, _ in texts]).tolist()),
        label_text_signs=np.array([sign for _, sign in texts], np.int8),
    )


def _wanted(config: EventConfig) -> Iterator[tuple[Steps, int, int]]:
    yield steps_of(config.id), ID, -1
    yield steps_of(config.label.path), LABEL, -1
    if config.mapping is not None:
        for at, feature in enumerate(config.mapping):
            yield steps_of(feature.path), _OF_KIND[feature.kind], at
        return
    yield ("kind",), KIND, -1
    if config.external:
        yield ("score",), NUMBER, 0
    for at, name in enumerate(config.features or ()):
        yield ("x", name), NUMBER, at


def _is_plain(step: str | int) -> bool:
    """Whether a step is a key that JSON writes as it is; one with an escape is left to the other reader."""
    return isinstance(step, str) and not any(character in '"\\' or character < " " for character in step)


def _descend(node: _Node, steps: Steps) -> _Node:
    for step in steps:
        node = node.children.setdefault(step, _Node())
    return node


def _numbered(root: _Node) -> Iterator[_Node]:
    """All nodes, each with its number."""
    waiting = [root]
    for number, node in enumerate(waiting):
        node.number = number
        waiting.extend(node.children.values())
        yield node


def _starts(sizes: list[int]) -> Numbers:
    """Where each of consecutive parts begins, and where the last ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)


def _ints(numbers: list[int]) -> Numbers:
    return np.array(numbers, np.int32)


def _bytes(parts: list[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(parts) + b"\0", np.uint8)
