"""One Kafka broker run from jars with the local Java: the one that a test may kill."""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from tests.broker.properties import COMMON, HOST, Node, free_ports, listener_properties
from tests.broker.readiness import wait_ready

LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

# prctl(PR_SET_PDEATHSIG, SIGKILL), then become the command: the kernel kills it when we die, however we die.
_TIED = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "
    "os.getppid() == int(sys.argv[1]) or sys.exit(1); os.execvp(sys.argv[2], sys.argv[2:])"
)

_LAUNCH_S = 30.0

# The kernel watches the thread that forked, not the process: fork from one that lives as long as we do.
_launcher = ThreadPoolExecutor(max_workers=1, thread_name_prefix="kafka-launcher")


class JarKafka:
    """A broker on fixed loopback ports and one data folder, which survive `kill` and `stop`.

    `listeners` opens further listeners (name to security protocol, for example
    `{"SECURE": "SASL_PLAINTEXT"}`), reached at `address(name)`. `properties`
    are added to or replace the server properties. The plain listener stays.
    `node` is its place in a cluster; see `tests.broker.cluster`.
    """

    def __init__(
        self,
        jars: Path,
        directory: Path,
        *,
        port: int | None = None,
        listeners: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        node: Node | None = None,
        heap_mb: int = 512,
    ) -> None:
        self.log = directory / "server.log"
        self.start_s = 0.0
        self._jars = jars
        self._data = directory / "data"
        self._file = directory / "server.properties"
        self._protocols = dict(listeners or {})
        self._node = node or Node()
        names = ("PLAINTEXT", *self._protocols)
        self._ports = dict(zip(names, free_ports(len(names)), strict=True)) | ({"PLAINTEXT": port} if port else {})
        self._ports["CONTROLLER"] = self._node.port
        self._extra = dict(properties or {})
        self._heap_mb = heap_mb
        self._process: subprocess.Popen[bytes] | None = None
        self._launched_at = 0.0

    @property
    def bootstrap(self) -> str:
        """The plain listener."""
        return self.address("PLAINTEXT")

    def address(self, listener: str) -> str:
        """Where a listener is reached."""
        return f"{HOST}:{self._ports[listener]}"

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process is not None and self._process.poll() is None

    def start(self, timeout_s: float = 180.0) -> None:
        """Start, or start again, and return when requests are served; `start_s` says how long it took.

        Raises `RuntimeError` when the broker exits, `TimeoutError` when it does not respond.
        """
        self.launch()
        self.wait_ready(timeout_s)

    def launch(self) -> None:
        """Start, or start again, and do not wait: of a cluster no node is ready before most of them run."""
        assert not self.running, "the broker is running already"
        self._launched_at = time.monotonic()
        self._write_properties()
        if not self._data.exists():
            self._format()
        self._process = _launcher.submit(self._launch).result(timeout=_LAUNCH_S)
        atexit.register(self.kill)

    def wait_ready(self, timeout_s: float = 180.0) -> None:
        """Return when requests are served, after `launch`. Raises as `start` does."""
        wait_ready(self.bootstrap, timeout_s, self._check_alive)
        self.start_s = time.monotonic() - self._launched_at

    def stop(self, timeout_s: float = 30.0) -> None:
        """Shut down in order (SIGTERM), by force when that takes longer than `timeout_s`."""
        if self._process is not None and self.running:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout_s)
        self.kill()

    def kill(self) -> None:
        """SIGKILL, as a power cut would. Data and ports stay for the next `start`."""
        atexit.unregister(self.kill)
        if self._process is not None:
            if self.running:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(timeout=30)

    def suspend(self) -> None:
        """SIGSTOP: connections stay open and nothing is served, as on a machine that is far too busy."""
        assert self._process is not None, "the broker was never started"
        os.killpg(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT, after `suspend`."""
        assert self._process is not None, "the broker was never started"
        os.killpg(self._process.pid, signal.SIGCONT)

    def close(self) -> None:
        """Kill and forget the data; the log stays."""
        self.kill()
        shutil.rmtree(self._data, ignore_errors=True)

    def wait(self) -> int:
        """Block until the broker exits by itself or by a signal."""
        assert self._process is not None, "the broker was never started"
        return self._process.wait()

    def _write_properties(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        listeners = listener_properties(self._ports, self._protocols)
        own = {**listeners, **self._node.properties(), "log.dirs": str(self._data)}
        settings = {**COMMON, **own, **self._extra}
        self._file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def _format(self) -> None:
        with self.log.open("ab") as log:
            command = self._java(
                "kafka.tools.StorageTool", "format", "-t", self._node.cluster_id, "-c", str(self._file)
            )
            done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, timeout=60, check=False)
        if done.returncode != 0:
            shutil.rmtree(self._data, ignore_errors=True)
            raise RuntimeError(f"Kafka could not format its data folder; {self._log_tail()}")

    def _launch(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid())]
        command += self._java("kafka.Kafka", str(self._file))
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def _java(self, main: str, *arguments: str) -> list[str]:
        options = [f"-Xmx{self._heap_mb}m", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={LOG_SETTINGS}"]
        return ["java", *options, "-cp", f"{self._jars}/*", main, *arguments]

    def _check_alive(self) -> None:
        if not self.running:
            raise RuntimeError(f"Kafka exited while starting; {self._log_tail()}")

    def _log_tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-30:]
        return "\n".join([f"the end of {self.log}:", *lines])
