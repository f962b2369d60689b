"""The buffer of waiting observations against a plain list of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npstream.partition import LabelConfig
from npstream.partition.pending import EARLY_MAX, GONE_MAX, Pending, id_hash

D = 2


def key(n: int) -> bytes:
    """The hash of a small id."""
    return id_hash(n)


def features(n: int) -> npt.NDArray[np.float32]:
    """Features that distinguish observations."""
    return np.array([n, -n], np.float32)


def park(pending: Pending, n: int, count: int = 0, clock: int = 0) -> int:
    """Park observation n, whose score is its number and whose published decision its parity."""
    slot = pending.park(key(n), features(n), float(n), count, clock)
    pending.decided[slot] = 1 if n % 2 else -1
    return slot


@dataclass
class Plain:
    """The same rules over one list: (id, count, clock) in the order of parking."""

    config: LabelConfig
    waiting: list[tuple[int, int, int]] = field(default_factory=list)
    labelled: set[int] = field(default_factory=set)
    expired: set[int] = field(default_factory=set)

    def ids(self) -> list[int]:
        return [n for n, _, _ in self.waiting]

    def remove(self, n: int, *, labelled: bool) -> int:
        self.waiting = [entry for entry in self.waiting if entry[0] != n]
        (self.labelled if labelled else self.expired).add(n)
        (self.expired if labelled else self.labelled).discard(n)
        return n

    def due(self, count: int, clock: int) -> list[int]:
        """From the front, while the oldest has waited too long."""
        found = []
        for n, parked_at, parked_ms in self.waiting:
            events, seconds = self.config.expire_events, self.config.expire_seconds
            too_many = events is not None and count - parked_at > events
            too_long = seconds is not None and clock - parked_ms > 1000 * seconds
            if not (too_many or too_long):
                break
            found.append(n)
        return found

    def fate(self, n: int) -> str:
        return "duplicate" if n in self.labelled else "late" if n in self.expired else "unmatched"


configs = st.builds(
    LabelConfig,
    buffer_max=st.integers(1, 5),
    expire_events=st.none() | st.integers(1, 8),
    expire_seconds=st.none() | st.sampled_from([0.005, 0.02]),
)
steps = st.lists(
    st.tuples(st.sampled_from(["observe", "label", "restore"]), st.integers(0, 9), st.integers(0, 7)), max_size=60
)


@given(configs, steps)
def test_it_keeps_what_a_plain_list_keeps(config: LabelConfig, todo: list[tuple[str, int, int]]) -> None:
    """Who waits, who leaves and when, in which order, and what a further label is called, over any events."""
    pending, plain = Pending(config, D), Plain(config)
    clock = 0
    for count, (what, n, later_ms) in enumerate(todo):
        clock += later_ms
        expected = [plain.remove(due, labelled=False) for due in plain.due(count, clock)]
        assert [int(entry.score) for entry in pending.expire(count, clock)] == expected
        if what == "observe" and not pending.holds(key(n)):
            if pending.full():
                assert int(pending.evict().score) == plain.remove(plain.ids()[0], labelled=False)
            park(pending, n, count, clock)
            plain.waiting.append((n, count, clock))
        elif what == "label" and pending.holds(key(n)):
            taken = pending.take(key(n))
            assert (plain.remove(n, labelled=True), taken.x.tolist()) == (int(taken.score), features(n).tolist())
            assert pending.decided[taken.slot] == (1 if n % 2 else -1)
        elif what == "restore":
            pending = Pending.load(config, D, pending.dump())
        assert (len(pending), pending.full()) == (len(plain.waiting), len(plain.waiting) == config.buffer_max)
        assert [n for n in range(10) if pending.holds(key(n))] == sorted(plain.ids())
        assert ids_of(pending) == [key(n) for n in plain.ids()]
    assert [pending.fate(key(n)) for n in range(10) if n not in plain.ids()] == [
        plain.fate(n) for n in range(10) if n not in plain.ids()
    ]


@pytest.mark.parametrize(
    ("config", "count", "clock", "gone"),
    [
        (LabelConfig(buffer_max=9), 10**9, 10**12, []),
        (LabelConfig(buffer_max=9, expire_events=5), 15, 10**12, []),
        (LabelConfig(buffer_max=9, expire_events=5), 16, 0, [1]),
        (LabelConfig(buffer_max=9, expire_seconds=2.0), 10**9, 2_100, []),
        (LabelConfig(buffer_max=9, expire_seconds=2.0), 0, 2_101, [1]),
        (LabelConfig(buffer_max=9, expire_events=5, expire_seconds=2.0), 20, 2_201, [1, 2]),
    ],
)
def test_an_observation_may_wait_as_long_as_the_rules_say(
    config: LabelConfig, count: int, clock: int, gone: list[int]
) -> None:
    """By events, by the partition's own time, or by whichever comes first; not a moment less."""
    pending = Pending(config, D)
    park(pending, 1, 10, 100)
    park(pending, 2, 20, 200)

    assert [int(entry.score) for entry in pending.expire(count, clock)] == gone


def ids_of(pending: Pending) -> list[bytes]:
    """The ids that wait, in the order of parking, as a snapshot keeps them."""
    packed = pending.dump()["pending.ids"]
    return [packed[at : at + 16] for at in range(0, len(packed), 16)]


def fill(pending: Pending, numbers: Iterable[int]) -> Pending:
    """Park and, where it is full, evict."""
    for n in numbers:
        if pending.full():
            pending.evict()
        park(pending, n)
    return pending


def test_a_snapshot_of_it_is_bounded() -> None:
    """However many came and went, it has the bytes of a full buffer, a full memory of ids and of early labels."""
    size = 7
    pending = fill(Pending(LabelConfig(buffer_max=size), D), range(GONE_MAX + 100))
    for n in range(EARLY_MAX + 100):
        pending.keep_early(key(-n - 1), 1)

    entry = 16 + 4 * D + 8 + 8 + 8 + 1
    assert sum(map(len, pending.dump().values())) == size * entry + 17 * (GONE_MAX + EARLY_MAX)


def test_the_bytes_do_not_depend_on_slots() -> None:
    """Two ways to the same waiting observations give the same snapshot, although they lie elsewhere."""
    straight, roundabout = (Pending(LabelConfig(buffer_max=3), D) for _ in range(2))
    for n in (1, 2):
        park(straight, n)
    for n in (8, 9, 1):
        park(roundabout, n)
    slots = [roundabout.take(key(n)).slot for n in (8, 9)]
    slots.append(park(roundabout, 2))

    dumps = [{name: blob for name, blob in p.dump().items() if name != "labels.gone"} for p in (straight, roundabout)]
    assert dumps[0] == dumps[1]
    assert len(set(slots)) < len(slots)  # a slot was used again


def test_a_restored_buffer_that_does_not_fit_is_refused() -> None:
    """Fewer places than observations: nothing is dropped in silence."""
    blobs = fill(Pending(LabelConfig(buffer_max=3), D), range(3)).dump()

    with pytest.raises(ValueError, match=r"3 waiting observations do not fit labels\.buffer_max 2"):
        Pending.load(LabelConfig(buffer_max=2), D, blobs)


def test_ids_are_forgotten_oldest_first() -> None:
    """Only the last that left are remembered; one that leaves again is remembered again."""
    pending = fill(Pending(LabelConfig(buffer_max=1), D), [*range(GONE_MAX), 0, GONE_MAX, GONE_MAX + 1])

    assert [pending.fate(key(n)) for n in (0, 1, 2, GONE_MAX)] == ["late", "unmatched", "late", "late"]


def test_an_early_label_waits_for_its_observation_once() -> None:
    """It is given out once; a further label of that id is a duplicate, before and after."""
    pending = Pending(LabelConfig(buffer_max=1), D)
    given_up = pending.keep_early(key(1), -1)

    assert (given_up, pending.fate(key(1))) == (False, "duplicate")
    assert [pending.take_early(key(n)) for n in (2, 1, 1)] == [0, -1, 0]
    assert pending.fate(key(1)) == "duplicate"


def test_the_oldest_early_label_is_given_up() -> None:
    """A label too many pushes out the one that has waited longest, and says so."""
    pending = Pending(LabelConfig(buffer_max=1), D)
    given_up = [pending.keep_early(key(n), 1) for n in range(EARLY_MAX + 2)]

    assert given_up == [False] * EARLY_MAX + [True, True]
    assert [pending.take_early(key(n)) for n in (0, 1, 2, EARLY_MAX + 1)] == [0, 0, 1, 1]


def test_a_text_is_not_the_number_it_spells() -> None:
    """Ids of either type have hashes of their own."""
    assert len({id_hash("7"), id_hash(7), id_hash("-7"), id_hash(-7), id_hash("i7"), id_hash("s7")}) == 6
