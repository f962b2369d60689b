"""For upstream and downstream code: make events, read decisions. Needs no Kafka client of ours.

    from confluent_kafka import Producer
    from npstream import client

    producer = Producer({"bootstrap.servers": "localhost:9092"})
    message = client.event("order-17", [3.1, 0.2, 41.0])
    producer.produce("events", message.value, message.key, headers=message.headers,
                     partition=client.partition_for(message.key, 12))
    later = client.label("order-17", target=True)

An event and its label carry the same key, hence meet on the same partition.

`Events` knows the names and paths of a topic's settings: it makes events of named
features, and reads them back, in JSON or in Avro.
"""

from npstream.client.events import Events, NamedEvent
from npstream.client.messages import Message, event, input_offset, label, partition_for, read_decision
from npstream.codec.decisions import Contribution, Decision

__all__ = [
    "Contribution",
    "Decision",
    "Events",
    "Message",
    "NamedEvent",
    "event",
    "input_offset",
    "label",
    "partition_for",
    "read_decision",
]
