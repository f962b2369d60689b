"""A long fuzz of mapped events: `python -m tests.codec.fuzz_events --events 1000000 --seed 0`.

Payments in every spelling and state of repair, in batches as a worker gets them.
Each batch is read by compiled code and, event by event, by the slow reader; both
must agree to the bit. A part of the events is read by the rules as the tests
write them out. Every event must come out decided, as a label, or bad with a
reason; one about a feature must name the feature and its path.
"""

import argparse
import json
import random
import time
from collections import Counter
from typing import Any

import numpy as np
import orjson

from npstream.codec.decoder import REASONS, Decoded, EventDecoder, Kind
from npstream.codec.draft import DocumentDecoder
from npstream.codec.json_events import parsed
from npstream.codec.walk import ODD, Walker
from npstream.records import Record
from tests.codec.builders import rows
from tests.codec.naive_events import naive_row
from tests.codec.payments import EVENT, FEATURES, PAYMENTS

BATCH = 2_000
NAIVE_EVERY = 20
ABOUT_FEATURES = ("missing_feature", "not_number", "magnitude", "bad_category", "bad_flag", "bad_time")

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, -0.0, 0.1, 12.5, -3, 1e15, 1.1e15, 5e-324, 1e-7, 2**53 + 1, 2**63, 2**64 - 1, 10**25,
    "", "Y", "N", "DE", "5411", "true", "é", "😀", 'a"b', "a\\b", "line\nline", "\x00", "x" * 300, [], {},
    [1, [2, {"a": None}]], {"country": "FR"}, {"three_ds": 1}, {"scores": [1, 2.5]}, {"scores": [None, None]},
    "2026-05-01T06:00:00Z", "2026-02-30", "2024-02-29 23:59:59.999+05:30", 1_700_000_000, 1_700_000_000_000,
    1.7e18, 1e20, "0001-01-01",
]  # fmt: skip
SPLICES = [
    b",",
    b"}",
    b"]",
    b'"',
    b"\\",
    b"\\u00e9",
    b"\\ud83d",
    b"\xff",
    b"\xc3\xa9",
    b"0",
    b"-",
    b"e",
    b".",
    b" ",
    b"\0",
    b"{",
]


def one_event(rng: random.Random) -> bytes:
    """A payment: mostly whole, sometimes with other values, other spelling, or damage."""
    document = dict(EVENT)
    document["payment_id"] = rng.choice([f"p-{rng.randrange(10**6)}", rng.randrange(-(10**18), 10**18)])
    document["amount"] = rng.choice([rng.gauss(0, 100), round(rng.gauss(0, 100), 2), rng.randrange(10**6)])
    document["velocity_1h"] = rng.uniform(-1e6, 1e6) * 10.0 ** rng.randrange(-12, 10)
    document["card"] = {"country": rng.choice(["DE", "FR", "US", "É", None]), "bin": rng.randrange(10**6)}
    document["created_at"] = rng.choice([rng.randrange(10**12), rng.uniform(0, 2e9), "2026-05-01T06:00:00Z"])
    for _ in range(rng.choice([0, 0, 0, 1, 2, 4])):
        document[rng.choice([*document, "kind", "extra"])] = rng.choice(VALUES)
    for _ in range(rng.choice([0, 0, 0, 0, 1, 6])):
        document.pop(rng.choice([*document]), None)
    value = spelled(document, rng)
    if rng.random() < 0.05:
        at = rng.randrange(len(value) + 1)
        value = value[:at] + rng.choice(SPLICES) + value[at + rng.randrange(3) :]
    if rng.random() < 0.02:
        value = value[:-1] + b',"amount":7}'
    return value


def spelled(document: dict[str, Any], rng: random.Random) -> bytes:
    """One of the ways in which serialisers write an object."""
    if rng.random() < 0.3:
        names = [*document]
        rng.shuffle(names)
        document = {name: document[name] for name in names}
    way = rng.randrange(3)
    if way == 0:
        return json.dumps(document).encode()
    if way == 1:
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return json.dumps(document, ensure_ascii=False, indent=rng.choice([None, 1])).encode()


def equal(one: Decoded, other: Decoded) -> bool:
    """To the bit, details of errors included."""
    seen = [
        (
            [*map(int, each.kinds)],
            [(identity, type(identity)) for identity in each.ids],
            each.x.tobytes(),
            each.y.tobytes(),
            {index: (error.reason, error.detail) for index, error in each.errors.items()},
            each.bad_ids,
        )
        for each in (one, other)
    ]
    return seen[0] == seen[1]


def agrees_with_the_rules(found: tuple[Any, ...], value: bytes) -> bool:
    """With the naive reader: sines and logarithms of another library are close, all else is equal."""
    expected = naive_row(value, PAYMENTS)
    return found[:2] + found[3:] == expected[:2] + expected[3:] and np.allclose(
        found[2], expected[2], rtol=3e-7, atol=2e-7, equal_nan=True
    )


def names_its_place(reason: str, detail: str) -> bool:
    """Whether a problem with a feature says which and where."""
    return reason not in ABOUT_FEATURES or any(detail.startswith(f"{each.name}: {each.path} ") for each in FEATURES)


def main() -> None:
    """Run, and print what was found; the first disagreement ends it with an error."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, fast, slow, walker = (
        random.Random(given.seed),
        EventDecoder(PAYMENTS),
        DocumentDecoder(PAYMENTS),
        Walker(PAYMENTS),
    )
    counts: Counter[str] = Counter()
    began = time.monotonic()
    for first in range(0, given.events, BATCH):
        values = [one_event(rng) for _ in range(min(BATCH, given.events - first))]
        decoded = fast.decode([Record(first + i, 1, None, value) for i, value in enumerate(values)])
        assert equal(decoded, slow.decode([parsed(value, PAYMENTS.max_bytes) for value in values])), f"at {first}"
        for index, row in enumerate(rows(decoded)):
            error = decoded.errors.get(index)
            assert (row[0] == Kind.BAD) == (error is not None), values[index]
            counts["good" if error is None else error.reason] += 1
            assert error is None or (error.reason in REASONS and names_its_place(error.reason, error.detail)), error
            assert index % NAIVE_EVERY or agrees_with_the_rules(row, values[index]), values[index]
        counts["left to the slow reader"] += int((walker.walk(values)[0].kinds == ODD).sum())
    print(orjson.dumps({"events": given.events, "seconds": round(time.monotonic() - began), **counts}).decode())


if __name__ == "__main__":
    main()
