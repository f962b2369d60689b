"""A worker on a thread of its own, for as long as a test looks at it."""

import threading

from npstream.worker import Worker

_WAIT_S = 60.0


class RunningWorker:
    """Runs from `start` to `stop`, or for the length of a block; `ended` is the error that ended it, if one did."""

    def __init__(self, worker: Worker, stop: threading.Event) -> None:
        self._worker = worker
        self._stop = stop
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.ended: BaseException | None = None

    def _run(self) -> None:
        try:
            self._worker.run()
        except BaseException as error:
            self.ended = error

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    def start(self) -> "RunningWorker":
        """Let it run."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop it politely."""
        self._stop.set()
        self._thread.join(_WAIT_S)
        assert not self.running, "the worker did not stop"

    def __enter__(self) -> "RunningWorker":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
