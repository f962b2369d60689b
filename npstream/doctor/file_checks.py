"""What is checked of an embedded file itself: its pages, every record, every kept checkpoint.

That each record is one npstream could have written, not that it is the one it
wrote: whether contents are as they were is what `npstream audit` proves.
"""

from collections.abc import Callable, Sequence

from npstream.codec.chunks import ChunkKey
from npstream.codec.history import find_damage
from npstream.doctor.findings import Finding
from npstream.doctor.group_checks import Patient
from npstream.errors import StateCorrupt
from npstream.records import Channel
from npstream.state import checkpoint_records

RESTORE = "stop the worker and restore the file from a backup; `npstream audit` shows what is lost otherwise"

_STEP = 1000


def check_pages(name: str, problems: Sequence[str]) -> list[Finding]:
    """What SQLite says of its own pages."""
    return [Finding("error", name, f"SQLite finds damage: {problem}", RESTORE) for problem in problems]


def check_records(patient: Patient, channel: Channel, partition: int, progress: Callable[[int], None]) -> list[Finding]:
    """Every record of a partition can be read, and none is missing where none is ever taken out."""
    name = f"{patient.topics.names()[channel]}/{partition}"
    ends = patient.log.ends(channel, partition)
    count = 0
    try:
        for count, _ in enumerate(patient.log.read(channel, partition, ends.begin, ends.stable), 1):
            if count % _STEP == 0:
                progress(_STEP)
    except StateCorrupt as error:
        return [Finding("error", name, str(error), RESTORE)]
    missing = ends.stable - ends.begin - count
    if missing and channel is not Channel.CHECKPOINTS:
        return [Finding("error", name, f"{missing} of {ends.stable - ends.begin} records are missing", RESTORE)]
    return []


def check_kept(patient: Patient, partition: int) -> list[Finding]:
    """Every kept checkpoint, change and reset can be read; the newest checkpoint is looked at with the position."""
    name = f"{patient.topics.events}/{partition}"
    damage = find_damage(checkpoint_records(patient.log, partition), patient.group, patient.topics.events, partition)
    newest = _newest_place(patient, partition)
    fix = "a worker does not need it unless the newer ones are lost; audit, explain and rollback do"
    return [
        Finding("error", name, f"a kept record is unreadable: {problem}", fix)
        for key, problem in damage.items()
        if not (isinstance(key, ChunkKey) and key.ring_place == newest)
    ]


def _newest_place(patient: Patient, partition: int) -> int | None:
    try:
        position = patient.state.committed(partition)
    except StateCorrupt:
        return None  # `group_checks.check_partition` finds it
    return None if position is None else position.pointer.ring_place
