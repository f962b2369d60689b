"""Settings: every room's values from one YAML file, the environment and the command line; all errors at once."""

from npstream.settings.connection import LOGINS, EmbeddedSection, KafkaSection
from npstream.settings.dump import masked_dump
from npstream.settings.load import events_config, from_mapping, load
from npstream.settings.reference import Entry, json_schema, reference
from npstream.settings.settings import Settings
from npstream.settings.sizes import BUFFER_MAX_BYTES, SNAPSHOT_MAX_BYTES, Sizes, sizes

__all__ = [
    "BUFFER_MAX_BYTES",
    "LOGINS",
    "SNAPSHOT_MAX_BYTES",
    "EmbeddedSection",
    "Entry",
    "KafkaSection",
    "Settings",
    "Sizes",
    "events_config",
    "from_mapping",
    "json_schema",
    "load",
    "masked_dump",
    "reference",
    "sizes",
]
