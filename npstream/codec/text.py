"""Bytes of a record as JSON can hold them, and back."""

from base64 import b64decode, b64encode
from typing import Any


def text_of(content: bytes | None) -> Any:
    """Text, or {"base64": ...} when the bytes are not UTF-8."""
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(content).decode()}


def bytes_of(content: Any) -> bytes | None:
    """Inverse of `text_of`. Raises what a content raises that `text_of` never gave."""
    if content is None:
        return None
    return b64decode(content["base64"], validate=True) if isinstance(content, dict) else content.encode()
