"""The log's file as the kernel knows it: one inode, whatever its names.

SQLite locks a file with POSIX locks, and a process loses all of those as soon as
it closes any descriptor of that file. So this process keeps one descriptor of
each log beside SQLite's own, shared by all who use the log and closed after the
last of them.

The worker's lock is on the file itself: a path, a symbolic link, another spelling
and a mount all lead to it, and it goes with the process. Its limits: a child that
was forked and has not called exec shares it until it ends; on a network file
system it is as good as the server's locks, and SQLite's journal needs a local
disk anyway; where the system has no locks that belong to a descriptor (it has
them on Linux) only the lock beside the log is left, see `lock`.
"""

import fcntl
import os
import struct
import sys
import threading
from pathlib import Path

from npstream.errors import Fatal

_LOCK_AT = 2**62
"""The byte that is locked: far beyond any that SQLite locks or writes."""

_FLOCK = struct.Struct("hhqqi")
"""The kernel's `struct flock`: type, whence, start, length, process."""

_Key = tuple[int, int]


class LogFile:
    """This process's descriptor of a log; get one with `open_file`, give it back with `close`."""

    def __init__(self, descriptor: int, key: _Key) -> None:
        self._descriptor = descriptor
        self._key = key
        self._locked = False
        self.users = 0

    @property
    def names(self) -> int:
        """How many hard links lead to the file."""
        return os.fstat(self._descriptor).st_nlink

    def is_at(self, path: Path) -> bool:
        """Whether the path still leads to this file."""
        try:
            return _key(os.stat(path)) == self._key
        except OSError:
            return False

    def lock(self) -> bool:
        """Become the file's one worker; False when there is one already. Raises `OSError` where locks do not work."""
        with _guard:
            if self._locked:
                return False
            if sys.platform == "linux":
                try:
                    fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, _flock(fcntl.F_WRLCK))
                except (BlockingIOError, PermissionError):
                    return False
            self._locked = True
            return True

    def unlock(self) -> None:
        """Let the next worker in."""
        with _guard:
            self._locked = False
            if sys.platform == "linux":
                fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, _flock(fcntl.F_UNLCK))

    @property
    def is_locked(self) -> bool:
        """Whether a worker, in whatever process, has the file."""
        if self._locked or sys.platform != "linux":
            return self._locked
        found = fcntl.fcntl(self._descriptor, fcntl.F_OFD_GETLK, _flock(fcntl.F_WRLCK))
        return bool(_FLOCK.unpack_from(found)[0] != fcntl.F_UNLCK)

    def close(self) -> None:
        """One user fewer; the last one closes the descriptor."""
        with _guard:
            self.users -= 1
            if self.users == 0:
                del _open[self._key]
                os.close(self._descriptor)


_open: dict[_Key, LogFile] = {}
_guard = threading.Lock()


def open_file(path: Path, *, create: bool = False) -> LogFile:
    """The file at a path, made for its owner alone when it is not there. Raises `Fatal` when it cannot be opened."""
    with _guard:
        try:
            found = None if create and not path.exists() else _open.get(_key(os.stat(path)))
            if found is None:
                descriptor = _descriptor(path, create)
                key = _key(os.fstat(descriptor))
                found = _open.setdefault(key, LogFile(descriptor, key))
        except OSError as error:
            raise Fatal(
                f"{path} cannot be opened ({error.strerror}): check that its folder exists and is writable"
            ) from error
        found.users += 1
        return found


def _descriptor(path: Path, create: bool) -> int:
    """Closed by exec. Its mode is also that of the journal files, which SQLite gives the mode of the log."""
    try:
        return os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o600)
    except PermissionError:
        return os.open(path, os.O_RDONLY)  # who may only read needs no lock


def _key(found: os.stat_result) -> _Key:
    return found.st_dev, found.st_ino


def _flock(kind: int) -> bytes:
    return _FLOCK.pack(kind, os.SEEK_SET, _LOCK_AT, 1, 0)
