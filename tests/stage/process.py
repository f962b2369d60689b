"""A worker process seen from outside: start, signals, state, and what its log says."""

import signal
from contextlib import suppress
from pathlib import Path

from npstream.failpoints import NAMES
from tests.stage import patience
from tests.stage.child import Child
from tests.stage.spec import WorkerSpec
from tests.system import mutants


class WorkerProcess(Child):
    """One worker of a group; `mutant` is a deliberate bug that it runs with."""

    def __init__(self, spec: WorkerSpec, folder: Path, mutant: str | None = None) -> None:
        log = folder / f"{spec.worker_name}.log"
        super().__init__(spec.worker_name, log, log)
        self.spec = spec
        self._file = folder / f"{spec.worker_name}.json"
        self._mutant = {} if mutant is None else {mutants.VARIABLE: mutant}

    def start(self, failpoints: str = "", spec: WorkerSpec | None = None) -> None:
        """A new life, with these failpoints armed (`name:hit:action,...`) and perhaps other settings."""
        assert all(item.split(":")[0] in NAMES for item in failpoints.split(",") if item), failpoints
        self.spec = spec or self.spec
        self._file.write_bytes(self.spec.to_json())
        self.launch("tests.system.worker_main", str(self._file), NPSTREAM_FAILPOINTS=failpoints, **self._mutant)

    def restart_if_down(self) -> None:
        """A new life without faults, where the last one has ended."""
        if not self.running:
            self.start()

    @property
    def stopped(self) -> bool:
        """Whether SIGSTOP holds it."""
        if not self.running:
            return False
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except FileNotFoundError:
            return False
        return stat.rsplit(")", 1)[1].split()[0] == "T"

    def owned(self) -> set[int]:
        """The partitions it has at the moment, by what it says."""
        own: set[int] = set()
        for line in self.logged():
            if line["event"] == "assigned":
                own.add(line["partition"])
            elif line["event"] in ("revoked", "lost"):
                own -= set(line["partitions"])
            elif line["event"] in ("started", "session restart"):
                own.clear()
        return own

    def wait_dead(self, timeout_s: float = 120.0) -> int:
        """Wait until it has ended, by a failpoint or by itself."""
        patience.wait_until(lambda: not self.running, f"the end of {self.name}\n{self.tail()}", timeout_s)
        assert self.returncode is not None
        return self.returncode

    def where(self) -> str:
        """The stack of a running worker, for a person who must find out why it does not go on."""
        if not self.running or self.stopped:
            how = "stopped" if self.running else f"ended with {self.returncode}"
            return f"{self.name}: {how}\n{self.tail(5)}"
        before = self.out.stat().st_size
        self.send(signal.SIGUSR1)
        with suppress(TimeoutError):
            patience.wait_until(lambda: self.out.stat().st_size > before, "its stack", 5.0)
        return self.tail(40)
