"""The effective settings for people to read, without secrets."""

import re
from typing import Any

from pydantic import SecretStr

from npstream.settings.settings import Settings

MASK = "********"

_SECRET = re.compile(r"password|secret|token|\.pem$|sasl\.oauthbearer\.config|jaas", re.IGNORECASE)


def masked_dump(settings: Settings) -> dict[str, Any]:
    """Every setting with its value, defaults included, ready for YAML or JSON; what is not set is left out.

    Loaded again it gives the same dump.
    """
    dump = _plain(settings.model_dump(exclude_none=True))
    assert isinstance(dump, dict)
    topics = settings.topic_names()
    dump["topics"] = {name: getattr(topics, name) for name in ("events", "decisions", "dead_letters", "checkpoints")}
    dump["http"] = dump.get("http", "off")
    return dump


def _plain(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, dict):
        return {name: MASK if _SECRET.search(name) else _plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float) else str(value)
