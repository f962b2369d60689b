"""What the settings say of schemas, as objects: a registry's client, a reader of documents, and ports that use it.

Nothing of it is loaded where events and decisions need no schema.
"""

from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

import orjson

from npstream.codec.decisions import DECISION_SCHEMA
from npstream.codec.document import NO_SCHEMA, document
from npstream.codec.event import SCHEMA_FORMATS
from npstream.errors import Fatal, SettingsError
from npstream.partition import PartitionConfig
from npstream.port import Broker, Log
from npstream.settings import Settings

if TYPE_CHECKING:
    from npstream.registry.client import RegistryClient
    from npstream.registry.documents import DocumentReader

_NEEDED = {"avro": ("fastavro",), "protobuf": ("google.protobuf", "grpc_tools")}
"""What reads a format: packages of the extra `registry`."""


class Schemas:
    """The schemas of one group's topics. Nothing is connected before it is needed. Raises `SettingsError`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._events = settings.events
        self.subject = f"{settings.topic_names().decisions}-value"
        """Where the schema of decisions is registered, by the usual rule for the values of a topic."""
        self._topic = settings.topic_names().events
        self._reader: DocumentReader | None = None
        missing = [name for name in _NEEDED.get(settings.events.format, ()) if not _is_installed(name)]
        if missing:
            raise SettingsError(
                [
                    f"events.format: {settings.events.format} needs {' and '.join(missing)}, not installed here; "
                    "run `pip install 'npstream[registry]'`"
                ]
            )

    def client(self) -> "RegistryClient":
        """A client of the registry, which the settings name."""
        from npstream.registry.client import RegistryClient, RegistryConfig

        section = self._events.registry
        assert section is not None
        return RegistryClient(RegistryConfig(section.url, section.username, section.secret(), section.ca_file))

    def probe(self) -> None:
        """Ask the registry for anything, where the settings name one. Raises `Retryable` or `Fatal`."""
        if self._events.registry is not None:
            self.client().probe()

    def reader(self) -> "DocumentReader | None":
        """The reader of all events, which keeps the schemas it has seen; None when events need no schema."""
        if self._reader is None and self._events.format in SCHEMA_FORMATS:
            from npstream.registry.documents import DocumentReader

            self._reader = DocumentReader(self._events.format, self.client(), self._events.max_bytes)
        return self._reader

    def partition_config(self) -> PartitionConfig:
        """What a partition does with an event, with the id that the schema of decisions is registered under.

        Raises `Fatal` when it is not; `Retryable`, too, when decisions have a schema.
        """
        config = self._settings.partition_config()
        if self._settings.decisions.format == "json":
            return config
        identity = self.client().find(self.subject, DECISION_SCHEMA)
        if identity is None:
            raise Fatal(
                f"schema registry {self.client().url}: has no schema of decisions under {self.subject!r}; "
                "run `npstream init`, which registers it"
            )
        return replace(config, decision_schema=identity)

    def plan(self) -> list[str]:
        """What `init` has to register, in words."""
        if self._settings.decisions.format == "json" or self.client().find(self.subject, DECISION_SCHEMA) is not None:
            return []
        return [f"register the schema of decisions in {self.client().url} under {self.subject}"]

    def register(self) -> None:
        """Register the schema of decisions, if they have one; twice is once."""
        if self._settings.decisions.format == "avro":
            self.client().register(self.subject, DECISION_SCHEMA)

    def read_line(self, value: bytes | None, *, exported: bool) -> bytes | None:
        """The value of a line of a file as the topic would hand it out: an exported one, or a document in JSON.

        Raises `UnknownSchema`, `Retryable`, `Fatal`.
        """
        reader = self.reader()
        if exported:
            return value if reader is None else reader.read(value)
        if reader is not None:
            return document(value or b"", orjson.loads(value or b""))
        return NO_SCHEMA + (value or b"") if self._events.format == "json_schema" else value

    def in_broker(self, broker: Broker) -> Broker:
        """The broker, which hands out events with their documents where they need a schema."""
        reader = self.reader()
        if reader is None:
            return broker
        from npstream.registry.topics import DocumentBroker

        return DocumentBroker(broker, reader, self._topic)

    def in_log(self, log: Log) -> Log:
        """The log, which reads events with their documents where they need a schema."""
        reader = self.reader()
        if reader is None:
            return log
        from npstream.registry.topics import DocumentLog

        return DocumentLog(log, reader, self._topic)


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False
