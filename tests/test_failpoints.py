"""Failpoints take effect at their very place, on whatever thread they are hit."""

import os
import subprocess
import sys

_ATTEMPTS = 20
"""A stop that comes late is late one time in a few."""

_HIT_ON_A_THREAD = """
import os, threading
from npstream import failpoints

def run():
    failpoints.hit("before_commit")
    os.write(1, b"went on")

thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


def test_a_stop_on_another_thread_is_no_later_than_its_place() -> None:
    """Commits wait on a thread of their own: a process that stops only soon would have committed already."""
    assert [_written_when_stopped() for _ in range(_ATTEMPTS)] == [None] * _ATTEMPTS


def _written_when_stopped() -> bytes | None:
    process = subprocess.Popen(
        [sys.executable, "-c", _HIT_ON_A_THREAD],
        env={**os.environ, "NPSTREAM_FAILPOINTS": "before_commit:1:stop"},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    with process.stdout:
        try:
            ended = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            assert ended is not None
            assert ended.si_code == os.CLD_STOPPED
            os.set_blocking(process.stdout.fileno(), False)
            return process.stdout.read()
        finally:
            process.kill()
            process.wait(30)
