"""One worker per file: an advisory lock beside the log, which the kernel drops with its process."""

import fcntl
import os
from pathlib import Path

from npstream.errors import Fatal


class WorkerLock:
    """Held by the one worker of an embedded log; readers and appenders do not need it."""

    def __init__(self, log_path: Path) -> None:
        self._file = os.open(_lock_path(log_path), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            process = _process_in(self._file)
            os.close(self._file)
            self._file = -1
            raise Fatal(
                f"another worker (process {process}) runs on {log_path}: stop it first, or give this one its own "
                "embedded.path; an embedded log has exactly one worker, several need Kafka"
            ) from error
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let the next worker in. Safe to call twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def holder(log_path: Path) -> str | None:
    """The id of the process that works on the log now, None when none does."""
    try:
        file = os.open(_lock_path(log_path), os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _process_in(file)
    finally:
        os.close(file)
    return None


def _lock_path(log_path: Path) -> Path:
    return log_path.with_name(log_path.name + ".lock")


def _process_in(file: int) -> str:
    return os.pread(file, 32, 0).decode(errors="replace").strip() or "unknown"
