"""One worker per file: a lock on the file itself, and one beside it that names the holder.

The kernel drops both with the process. The one beside the log, at its real path,
names the holding process to the one that is refused, and does the work alone on systems
without locks that belong to a descriptor.
"""

import fcntl
import os
from pathlib import Path

from npstream.embedded.file import LogFile, open_file
from npstream.errors import Fatal

_ONE = (
    "stop it first, or give this one its own embedded.path; an embedded log has exactly one worker, several need Kafka"
)


class LabellingLock:
    """Held by the one command that writes labels to an embedded log, beside its worker."""

    def __init__(self, log_path: Path) -> None:
        """Raises `Fatal` when another one has it."""
        real = log_path.resolve()
        self._file = os.open(real.with_name(real.name + ".label"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            raise Fatal(f"another `npstream label` runs on {log_path}: wait until it has ended") from error

    def release(self) -> None:
        """Let the next command in. Safe to call twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class WorkerLock:
    """Held by the one worker of an embedded log; readers and appenders do not need it."""

    def __init__(self, log_path: Path) -> None:
        """Raises `Fatal` when another worker has the file."""
        self._beside = _lock_beside(log_path)
        try:
            self._file = _lock_file(log_path)
        except BaseException:
            os.close(self._beside)
            raise
        os.ftruncate(self._beside, 0)
        os.pwrite(self._beside, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let the next worker in. Safe to call twice."""
        if self._beside >= 0:
            self._file.unlock()
            self._file.close()
            os.close(self._beside)
            self._beside = -1


def _lock_beside(log_path: Path) -> int:
    file = os.open(_lock_path(log_path), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        process = _process_in(file)
        os.close(file)
        raise Fatal(f"another worker (process {process}) runs on {log_path}: {_ONE}") from error
    return file


def _lock_file(log_path: Path) -> LogFile:
    file = open_file(log_path)
    try:
        if file.lock():
            return file
        refusal = Fatal(f"another worker runs on {log_path}, which it reached by another name or mount: {_ONE}")
    except OSError as error:
        refusal = Fatal(
            f"{log_path} cannot be locked ({error.strerror}): check its permissions, and that it is on a local disk"
        )
    file.close()
    raise refusal


def holder(log_path: Path) -> str | None:
    """The id of the process that works on the log now, None when none does."""
    return _holder_beside(log_path) or _holder_elsewhere(log_path)


def _holder_beside(log_path: Path) -> str | None:
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


def _holder_elsewhere(log_path: Path) -> str | None:
    file = open_file(log_path)
    try:
        return "unknown" if file.is_locked else None
    finally:
        file.close()


def _lock_path(log_path: Path) -> Path:
    real = log_path.resolve()
    return real.with_name(real.name + ".lock")


def _process_in(file: int) -> str:
    return os.pread(file, 32, 0).decode(errors="replace").strip() or "unknown"
