"""Which deliberate bugs the simulation must find, and why it cannot find the others.

The bugs of the Kafka adapter are made again in the simulated one: what they
break is the same.
"""

from collections.abc import Callable
from typing import Any

from npstream.records import Channel, Topics
from tests.simulation.cluster import Cluster
from tests.simulation.group import Group
from tests.simulation.partition_log import PartitionLog
from tests.simulation.publisher import Publisher
from tests.system.mutants import MUTANTS

_UNDER_TEST = (
    *("offsets_while_replaying", "batch_not_split", "offset_off_by_one", "failed_commit_ignored"),
    *("staged_survives_loss", "staged_forgotten_on_revoke", "shares_before_the_commit_is_over"),
    *("checkpoint_while_replaying", "settings_before_replay", "change_without_record", "wall_clock_timestamp"),
    *("hash_order", "outputs_by_topic", "keys_of_neighbours", "segments_forget_who_left"),
    "segments_forget_labels",
    *("labels_taken_again", "labels_marked_too_late", "labels_of_the_batch_are_dropped"),
    *("position_without_merges", "replay_without_merges"),
)


def _read_uncommitted() -> None:
    def read(self: Any, begin: int, end: int) -> Any:
        return (entry.record for entry in self._entries if begin <= entry.offset < end and entry.record is not None)

    PartitionLog.read = read  # type: ignore[method-assign]
    Group.is_undecided = lambda self, partition: False  # type: ignore[method-assign]


def _never_joined_metadata() -> None:
    honest = Group.add_offsets

    def add_offsets(self: Any, transaction: Any, offsets: Any, member: Any, at: int) -> None:
        honest(self, transaction, offsets, self.members[0], self.generation)

    Group.add_offsets = add_offsets  # type: ignore[method-assign]


def _outside_the_transaction(channel: Channel) -> None:
    honest = Cluster.write
    names = Topics("events", "decisions", "dead", "checkpoints").names()

    def write(self: Any, transaction: Any, name: str, partition: int, *record: Any) -> int:
        if name != names[channel]:
            return honest(self, transaction, name, partition, *record)
        key, value, *rest = record
        return int(self.partition(name, partition).append(key, value, *(rest or [(), 1])))

    Cluster.write = write  # type: ignore[method-assign,assignment]


def _pointer_one_snapshot_early() -> None:
    honest, last = Publisher._send, []

    def send(self: Any, share: Any) -> Any:
        pointer = honest(self, share)
        if share.chunks:
            last.append(pointer.offset)
        return type(pointer)(last[-2 if len(last) > 1 else -1], *_rest(pointer))

    Publisher._send = send  # type: ignore[method-assign]


def _rest(pointer: Any) -> tuple[Any, ...]:
    return pointer.chunks, pointer.ring_place, pointer.next_offset, pointer.digest


IN_THE_ADAPTER: dict[str, Callable[[], None]] = {
    "read_uncommitted": _read_uncommitted,
    "never_joined_metadata": _never_joined_metadata,
    "decisions_outside_the_transaction": lambda: _outside_the_transaction(Channel.DECISIONS),
    "pointer_one_snapshot_early": _pointer_one_snapshot_early,
}

PATCHES = {name: MUTANTS[name].patch for name in _UNDER_TEST} | IN_THE_ADAPTER

_SHARED = "the oracle decodes and decides by the same code, whatever is wrong with it"
_FAITHFUL = "needs events, snapshots or records that somebody has altered, and here nobody does"
_REFUSED = "needs records that the brokers refuse; `tests.worker` and `tests.kafka` have those"
_ORPHANS = "leaves a record behind that nobody reads: no decision can show it, only a look at the topic"
_TOOLS = "needs archived checkpoints, or the audit's report, which a schedule does not look at"
_CHALLENGERS = "needs a challenger, which the simulated groups do not have"
_LOGINS = "needs a login, which the simulated brokers do not ask for"
_SAMPLES = "needs a review sample, which the simulated groups do not have"
_UNSEEN = "changes what decisions do not show; `tests.partition` compares it"
OUT_OF_REACH = {
    "resets_unknown_to_a_search": _TOOLS,
    "challenger_not_restored": _CHALLENGERS,
    "decisions_of_another_challenger": _CHALLENGERS,
    "promotion_one_offset_late": _CHALLENGERS,
    "promotion_forgets_what_was_published": _CHALLENGERS,
    "login_as_it_was": _LOGINS,
    "certificates_unseen": _LOGINS,
    "sample_begins_with_each_batch": _SAMPLES,
    "sample_taught_for_those_that_expire": _SAMPLES,
    "history_by_wall_clock": _UNSEEN,
    "history_without_its_warmup": _UNSEEN,
    "reasons_forgotten": "needs decisions with reasons, which the simulated groups do not ask for",
    "archive_never_lets_go": _TOOLS,
    "archive_forgets_its_segments": _TOOLS,
    "archive_by_the_last_timestamp": _TOOLS,
    "audit_hides_what_it_skips": _TOOLS,
    "segments_removed_at_once": "needs a restore from an older snapshot than the newest, which only tools make",
    "labels_before_any_event": _SHARED,
    "labels_at_once_stand": _SHARED,
    "journal_without_corrections": _SHARED,
    "corrections_counted_twice": _SHARED,
    "merge_up_to_the_cap": "needs the cap on dead letters, which would pause a partition",
    "merges_without_end": "needs thousands of merges between two checkpoints",
    "snapshot_outside_the_transaction": _ORPHANS,
    "segments_outside_the_transaction": _ORPHANS,
    "no_proof_check": _FAITHFUL,
    "any_snapshot_will_do": _FAITHFUL,
    "nobody_is_refused": _REFUSED,
    "always_together": _REFUSED,
    "first_strike_pauses": _REFUSED,
    "expiry_by_wall_clock": "needs a limit in event time; the contract of the processor has it",
    "ids_of_neighbours": _SHARED,
    "walked_labels_without_sign": _SHARED,
    "journal_without_features": _SHARED,
    "dead_letters_whole": _SHARED,
}
