"""Logins that change while a worker runs: what a session logged in with, held against what the files hold now.

Clients keep what they were made with, and open connections stay open whatever
happens to a password or a certificate. So nothing is done until brokers refuse
a login; when its files have changed by then, another session reads them.
"""

import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

from confluent_kafka import KafkaError

from npstream.errors import Retryable
from npstream.kafka.config import KafkaConfig
from npstream.kafka.errors import translate

_LOOK_S = 2.0
"""How often the files are read while brokers refuse the login."""


class LoginWatch:
    """Ends a session whose login is refused, once its files hold another one."""

    def __init__(self, config: KafkaConfig, clock: Callable[[], float] = time.monotonic) -> None:
        """To be made before the clients are, so that no change is missed."""
        self._config = config
        self._clock = clock
        self._made_with = _digest(config)
        self._next_look = 0.0

    def look(self, refused: KafkaError | None) -> None:
        """Raise `Retryable` when the login was refused and its files have changed since. Cheap when it was not."""
        if refused is None or self._clock() < self._next_look:
            return
        self._next_look = self._clock() + _LOOK_S
        if self._changed():
            error = translate(refused, "staying connected", self._config)
            raise Retryable(f"{error}: the files of the login have changed since, so another session reads them")

    def _changed(self) -> bool:
        try:
            return _digest(self._config.renewed()) != self._made_with
        except Retryable:
            return False  # a file that is being replaced is there again at the next look


def _digest(config: KafkaConfig) -> bytes:
    """One digest of all that a login is made of, the contents of certificates and keys included."""
    found = blake2b()
    for name, value in sorted({**config.options, **config.security}.items()):
        found.update(repr((name, value)).encode())
        if name.endswith(("_file", ".location")):
            found.update(_content(Path(str(value))))
    return found.digest()


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # of a folder, or not there: the client has its own word on it
