"""What decisions came to: alarms among all decisions, among non-targets and among targets, in all and recently.

Decisions taken in warm-up are in none of these: there can be no alarm among them. The
recent ones are kept as the counts of up to 64 blocks, the newest of which is still
filling. A label that is corrected is taken back from the newest block that has one
like it: whether the blocks reach back to itself is not known, and where labels go on
being overruled at some rate, the recent rates are then right on average.

Where there are tiers, each has rows of its own, the widest first; what is left out is
the warm-up of the widest, as in its own rates.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from npstream.arrays import Ints
from npstream.jit import jit, jit_inline
from npstream.records import AlarmRates, Counted, Spans, TierRates

OF_ALL, OF_NON_TARGETS, OF_TARGETS = range(3)
"""Rows: what alarms are counted among. Those of a stricter tier follow, `KINDS` further for each."""
KINDS = 3
ALARMS, EVENTS = range(2)
"""Columns."""

_BLOCKS = 64
_TARGETS_WINDOW = 500
"""Labelled targets to judge a detection rate by."""


class Account(NamedTuple):
    """`total` int64[r, 2]; `block` int64[r, 64, 2], `at` int64[r] the one that fills, to `size` int64[r] events.

    r is 3, with tiers 3 for each.
    """

    total: Ints
    block: Ints
    at: Ints
    size: Ints


def window_for(tau: float) -> int:
    """Events to judge a rate of alarms by: about 50 expected ones, within reason."""
    return min(max(round(50 / tau), 500), 50_000)


def empty_account(rates: int = 1) -> Account:
    """Nothing decided yet, at so many rates; its blocks have no size."""
    rows = KINDS * rates
    return Account(*(np.zeros(shape, np.int64) for shape in ((rows, 2), (rows, _BLOCKS, 2), rows, rows)))


def set_windows(account: Account, *rates: float) -> None:
    """From now on blocks have the size that suits each of these rates, the widest first."""
    for k, rate in enumerate(rates):
        account.size[KINDS * k : KINDS * (k + 1)] = -(-window_for(rate) // _BLOCKS)
    account.size[OF_TARGETS::KINDS] = -(-_TARGETS_WINDOW // _BLOCKS)


def widest_of(account: Account, rates: int) -> Account:
    """What is counted at the widest rate, at so many rates of which the others begin."""
    made = empty_account(rates)
    for old, new in zip(account, made, strict=True):
        new[:KINDS] = old[:KINDS]
    return made


def alarm_rates(account: Account, tiers: Sequence[str] = (), alarms_per_day: float | None = None) -> AlarmRates:
    """What was counted, as rates; of these tiers, the widest first."""
    total, recent = account.total.tolist(), account.block.sum(axis=1).tolist()
    spans = [Spans(Counted(*window), Counted(*life)) for window, life in zip(recent, total, strict=True)]
    found = [TierRates(name, *spans[KINDS * k :][:KINDS]) for k, name in enumerate(tiers)]
    alarms, fpr, tpr = spans[:KINDS]
    return AlarmRates(alarms, fpr, tpr, alarms_per_day, tuple(found[::-1]))


def dump_account(account: Account) -> bytes:
    """For a snapshot; the sizes follow from the settings."""
    return b"".join(column.astype("<i8").tobytes() for column in account[:3])


def load_account(data: bytes, rates: int = 1) -> Account:
    """What `dump_account` wrote of so many rates. Raises ValueError when it cannot be that."""
    account, values = empty_account(rates), np.frombuffer(data, "<i8").astype(np.int64)
    total, block, at = np.split(values, np.cumsum([part.size for part in account[:2]]))
    for part, found in zip(account, (total, block, at), strict=False):
        part[...] = found.reshape(part.shape)
    if values.min() < 0 or account.at.max() >= _BLOCKS:
        raise ValueError("the account of decisions has a count that cannot be")
    return account


@jit_inline
def row_of(y: int) -> int:
    """What an alarm, or none, is counted among under this label."""
    return OF_TARGETS if y > 0 else OF_NON_TARGETS


@jit_inline
def note(row: int, warm: bool, decision: int, account: Account) -> None:
    """One more event, unless it was decided in warm-up."""
    if warm:
        return
    alarm = 1 if decision > 0 else 0
    at = account.at[row]
    if account.block[row, at, EVENTS] >= account.size[row]:
        at = (at + 1) % account.block.shape[1]
        account.at[row] = at
        account.block[row, at, EVENTS] = account.block[row, at, ALARMS] = 0
    account.block[row, at, EVENTS] += 1
    account.block[row, at, ALARMS] += alarm
    account.total[row, EVENTS] += 1
    account.total[row, ALARMS] += alarm


@jit_inline
def take_back(row: int, warm: bool, decision: int, account: Account) -> None:
    """An event was none of this kind."""
    if warm:
        return
    alarm = 1 if decision > 0 else 0
    account.total[row, EVENTS] -= 1
    account.total[row, ALARMS] -= alarm
    blocks = account.block.shape[1]
    for back in range(blocks):
        at = (account.at[row] - back + blocks) % blocks
        alarms, events = account.block[row, at, ALARMS], account.block[row, at, EVENTS]
        if (alarm == 1 and alarms > 0) or (alarm == 0 and events > alarms):
            account.block[row, at, EVENTS] -= 1
            account.block[row, at, ALARMS] -= alarm
            return


@jit_inline
def note_all(row: int, warm: bool, depth: int, account: Account) -> None:
    """One more event of this kind, for each tier: an alarm of the first `depth` of them."""
    note(row, warm, depth, account)
    if account.at.size > KINDS:
        _note_stricter(row, warm, depth, account)


@jit
def _note_stricter(row: int, warm: bool, depth: int, account: Account) -> None:
    for k in range(1, account.at.size // KINDS):
        note(KINDS * k + row, warm, depth - k, account)


@jit_inline
def take_back_all(row: int, warm: bool, depth: int, account: Account) -> None:
    """An event was none of this kind, in the rows of each tier."""
    take_back(row, warm, depth, account)
    if account.at.size > KINDS:
        _take_back_stricter(row, warm, depth, account)


@jit
def _take_back_stricter(row: int, warm: bool, depth: int, account: Account) -> None:
    for k in range(1, account.at.size // KINDS):
        take_back(KINDS * k + row, warm, depth - k, account)
