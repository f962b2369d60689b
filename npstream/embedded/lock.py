"""One worker per file: an advisory lock beside the log, which the kernel drops with its process."""

import fcntl
import os
from pathlib import Path

from npstream.errors import Fatal


class WorkerLock:
    """Held by the one worker of an embedded log; readers and appenders do not need it."""

    def __init__(self, log_path: Path) -> None:
        self._path = log_path.with_name(log_path.name + ".lock")
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._file, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            self._file = -1
            raise Fatal(
                f"another worker (process {holder}) runs on {log_path}: stop it first, or give this one its own "
                "embedded.path; an embedded log has exactly one worker, several need Kafka"
            ) from error
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let the next worker in. Safe to call twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
