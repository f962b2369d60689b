"""The broker without Kafka: topics, offsets and atomic commits in one SQLite file."""

from npstream.embedded.broker import EmbeddedBroker
from npstream.embedded.labelling import EmbeddedLabelling
from npstream.embedded.log import EmbeddedLog
from npstream.embedded.state import EmbeddedStateReader
from npstream.embedded.store import create_topics

__all__ = ["EmbeddedBroker", "EmbeddedLabelling", "EmbeddedLog", "EmbeddedStateReader", "create_topics"]
