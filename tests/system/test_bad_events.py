"""Ten thousand bad events among a hundred thousand good ones."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson
import pytest

from npstream.codec.dead_letters import read_dead_letter
from npstream.codec.decoder import EventConfig
from npstream.embedded import EmbeddedLog
from npstream.records import Channel, Record
from tests.partition.builders import config, point, record
from tests.stage.stage import Stage, on_file

GOOD, BAD = 100_000, 10_000
MAX_BYTES = 2_000

Kind = tuple[str, Callable[[int], bytes | None]]
KINDS: list[Kind] = [
    ("tombstone", lambda i: None),
    ("empty", lambda i: b""),
    ("oversize", lambda i: b'{"id":"b%d","x":[' % i + b"1," * MAX_BYTES + b"1]}"),
    ("not_json", lambda i: b'{"id":"b%d","x":[1,2,3],"y":1' % i),
    ("not_json", lambda i: b"\xff\xfe\x00%d" % i),
    ("not_json", lambda i: b'{"id":"b%d","x":[NaN,0,0],"y":1}' % i),
    ("not_json", lambda i: b'{"id":"b%d","x":[1,2,3],"y":1}{}' % i),
    ("not_object", lambda i: b"[%d]" % i),
    ("not_object", lambda i: b'"b%d"' % i),
    ("no_features", lambda i: b'{"id":"b%d"}' % i),
    ("bad_features", lambda i: b'{"id":"b%d","x":"1,2,3","y":1}' % i),
    ("bad_features", lambda i: b'{"id":"b%d","x":{"a":1,"b":2,"c":3},"y":1}' % i),
    ("wrong_length", lambda i: b'{"id":"b%d","x":[1,2],"y":1}' % i),
    ("not_number", lambda i: b'{"id":"b%d","x":[1,"2",3],"y":1}' % i),
    ("magnitude", lambda i: b'{"id":"b%d","x":[1,2,-1e300],"y":1}' % i),
    ("bad_label", lambda i: b'{"id":"b%d","x":[1,2,3],"y":7}' % i),
    ("no_label", lambda i: b'{"id":"b%d","x":[1,2,3],"kind":"label"}' % i),
    ("bad_id", lambda i: b'{"id":%d.5,"x":[1,2,3],"y":1}' % i),
    ("no_id", lambda i: b'{"y":1,"n":%d}' % i),
    ("bad_kind", lambda i: b'{"id":"b%d","x":[1,2,3],"y":1,"kind":"event"}' % i),
]


def good_events(rng: np.random.Generator) -> list[Record]:
    """Labelled events, observations, and their labels some hundred events later; all name themselves."""
    events: list[Record] = []
    waiting: list[tuple[int, int]] = []
    for number in range(GOOD):
        y = 1 if rng.random() < 0.3 else -1
        if len(waiting) > 200:
            identity, late = waiting.pop(int(rng.integers(50)))
            value: dict[str, object] = {"id": identity, "y": late}
        elif rng.random() < 0.5:
            value = {"id": number, "x": point(rng, y), "y": y}
        else:
            value = {"id": number, "x": point(rng, y)}
            waiting.append((number, y))
        events.append(record(number, orjson.dumps(value)))
    return events


def run(path: Path, events: list[Record]) -> Stage:
    """A worker over these events, to their end."""
    bench = on_file(path)
    bench.feed(0, events)
    rules = config(events=EventConfig(d=3, max_bytes=MAX_BYTES), dead_letter_cap=1.0)
    bench.decide(rules, batch_max=2000)
    return bench


@pytest.mark.slow
def test_bad_events_leave_the_decisions_on_the_good_ones_alone(tmp_path: Path) -> None:
    """
    Key, value and timestamp of each good event's decision are those of a run
    without the bad ones, and every bad one is a dead letter with its own bytes.
    """
    rng = np.random.default_rng(7)
    good = good_events(rng)
    bad = [(KINDS[i % 20][0], record(i, KINDS[i % 20][1](i), timestamp_ms=5_000_000 + i)) for i in range(BAD)]
    places = np.sort(rng.choice(GOOD + BAD, BAD, replace=False)).tolist()
    mixed: list[Record] = []
    left, spoiled = iter(good), iter(bad)
    taken = set(places)
    for at in range(GOOD + BAD):
        mixed.append(next(spoiled)[1] if at in taken else next(left))

    alone, together = run(tmp_path / "alone.db", good), run(tmp_path / "together.db", mixed)

    wanted = [(key, value, ts) for key, value, _, ts in alone.published(Channel.DECISIONS)]
    assert [(key, value, ts) for key, value, _, ts in together.published(Channel.DECISIONS)] == wanted
    assert alone.published(Channel.DEAD_LETTERS) == []
    log = EmbeddedLog(together.path, together.place.topics)
    dead_letters = [read_dead_letter(dead_letter) for dead_letter in log.read(Channel.DEAD_LETTERS, 0, 0, 2**40)]
    log.close()
    assert [
        (dead_letter.reason, dead_letter.key, dead_letter.value, dead_letter.timestamp_ms, dead_letter.offset)
        for dead_letter in dead_letters
    ] == [
        (reason, item.key, item.value, item.timestamp_ms, place)
        for (reason, item), place in zip(bad, places, strict=True)
    ]
    assert set(Counter(dead_letter.reason for dead_letter in dead_letters)) == {reason for reason, _ in KINDS}
