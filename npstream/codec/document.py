"""A value that only its schema can read, with what it says.

Schemas are fetched, and decoding has no effects: so whoever reads records from a
topic looks the schema up, and hands on the bytes together with their meaning.
The bytes stay what they are, for dead letters and exports.
"""

from typing import Any

from npstream.errors import BadEvent


class Document(bytes):
    """The bytes of a value, as they are in the topic; `content` is what they say."""

    content: Any
    """The document in the terms of JSON, or a `BadEvent` when the bytes do not fit their schema."""


def document(value: bytes, content: Any | BadEvent) -> Document:
    """A value with its content."""
    made = Document(value)
    made.content = content
    return made
