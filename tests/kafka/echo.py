"""A small worker for the tests: its decision on an event is the event."""

import threading

from npstream.errors import Retryable
from npstream.kafka import KafkaBroker
from npstream.records import Record, Share
from tests.contracts.builders import PATIENCE_S, Owner, chunks, decision, share
from tests.stage.places import KafkaPlace


class Echo:
    """Works in a thread of its own until stopped; like the real worker it starts over after a `Retryable`."""

    def __init__(self, place: KafkaPlace, worker_name: str, static: bool) -> None:
        self._place, self._worker_name, self._static = place, worker_name, static
        self.stop = threading.Event()
        self.has_worked = threading.Event()
        self.resets = 0

    def run(self) -> None:
        """Work until stopped, then leave."""
        while not self.stop.is_set():
            broker = self._place.kafka_broker(self._worker_name, static_membership=self._static)
            try:
                owner = Owner(broker)
                broker.subscribe(owner)
                while not self.stop.is_set():
                    self._turn(broker, owner)
                broker.close(PATIENCE_S)
            except Retryable:
                self.resets += 1
                broker.abandon()

    def _turn(self, broker: KafkaBroker, owner: Owner) -> None:
        owner.poll(max_records=20, timeout_s=0.05)
        got, owner.got = owner.got, {}
        broker.commit([_echo(partition, records) for partition, records in got.items()])
        if got:
            self.has_worked.set()


def _echo(partition: int, records: list[Record]) -> Share:
    return share(partition, records[-1].offset + 1, [decision(r.value or b"") for r in records], chunks(1))
