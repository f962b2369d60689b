"""What decisions came to: alarms among all decisions, among non-targets and among targets, in all and recently.

Decisions taken in warm-up are in none of these: there can be no alarm among them. The
recent ones are kept as the counts of up to 64 blocks, the newest of which is still
filling. A label that is corrected is taken back from the newest block that has one
like it: whether the blocks reach back to itself is not known, and where labels go on
being overruled at some rate, the recent rates are then right on average.
"""

from typing import NamedTuple

import numpy as np

from npstream.arrays import Ints
from npstream.jit import jit_inline

OF_ALL, OF_NON_TARGETS, OF_TARGETS = range(3)
"""Rows: what alarms are counted among."""
ALARMS, EVENTS = range(2)
"""Columns."""

_BLOCKS = 64
_TARGETS_WINDOW = 500
"""Labelled targets to judge a detection rate by."""


class Account(NamedTuple):
    """`total` int64[3, 2]; `block` int64[3, 64, 2], `at` int64[3] the one that fills, to `size` int64[3] events."""

    total: Ints
    block: Ints
    at: Ints
    size: Ints


def window_for(tau: float) -> int:
    """Events to judge a rate of alarms by: about 50 expected ones, within reason."""
    return min(max(round(50 / tau), 500), 50_000)


def empty_account() -> Account:
    """Nothing decided yet; its blocks have no size."""
    return Account(*(np.zeros(shape, np.int64) for shape in ((3, 2), (3, _BLOCKS, 2), 3, 3)))


def set_windows(account: Account, tau: float) -> None:
    """From now on blocks have the size that suits such a rate."""
    account.size[:] = -(-window_for(tau) // _BLOCKS)
    account.size[OF_TARGETS] = -(-_TARGETS_WINDOW // _BLOCKS)


def dump_account(account: Account) -> bytes:
    """For a snapshot; the sizes follow from the settings."""
    return b"".join(column.astype("<i8").tobytes() for column in account[:3])


def load_account(data: bytes) -> Account:
    """What `dump_account` wrote. Raises ValueError when it cannot be that."""
    account, values = empty_account(), np.frombuffer(data, "<i8").astype(np.int64)
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
