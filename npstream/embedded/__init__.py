"""The broker without Kafka: topics, offsets and atomic commits in one SQLite file."""

from npstream.embedded.broker import EmbeddedBroker
from npstream.embedded.log import EmbeddedLog
from npstream.embedded.steward import EmbeddedSteward
from npstream.embedded.store import create_topics

__all__ = ["EmbeddedBroker", "EmbeddedLog", "EmbeddedSteward", "create_topics"]
