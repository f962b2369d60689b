"""The same broker from the official image, where there is a Docker daemon."""

from pathlib import Path

from tests.broker.jars import VERSION
from tests.broker.properties import COMMON, Node, free_ports, listener_properties
from tests.broker.readiness import wait_ready

IMAGE = f"apache/kafka:{VERSION}"


def docker_responds() -> bool:
    """Whether a Docker daemon can be reached; at most three seconds."""
    import docker

    try:
        return bool(docker.from_env(timeout=3).ping())
    except docker.errors.DockerException:
        return False


class DockerKafka:
    """A broker in a container, on one fixed loopback port so that it can advertise the address it is reached at."""

    def __init__(self) -> None:
        from testcontainers.core.container import DockerContainer

        node = Node(controllers={1: 9093})
        ports = {"PLAINTEXT": free_ports(1)[0], "CONTROLLER": node.port}
        self.bootstrap = f"127.0.0.1:{ports['PLAINTEXT']}"
        settings = {**COMMON, **node.properties(), **listener_properties(ports, {}, bind="0.0.0.0")}
        self._container = DockerContainer(IMAGE).with_envs(**{_variable(name): settings[name] for name in settings})
        # with_bind_ports would publish on every interface.
        self._container.ports[f"{ports['PLAINTEXT']}/tcp"] = ("127.0.0.1", ports["PLAINTEXT"])  # type: ignore[assignment]

    def start(self, timeout_s: float = 120.0) -> None:
        """Pull if needed, run, and return when requests are served."""
        self._container.start()
        wait_ready(self.bootstrap, timeout_s, lambda: None)

    def close(self, log: Path) -> None:
        """Keep the container's log, then remove the container."""
        if self._container.get_wrapped_container() is not None:
            stdout, stderr = self._container.get_logs()
            log.write_bytes(stdout + stderr)
        self._container.stop()


def _variable(name: str) -> str:
    """How the image spells a server property as an environment variable."""
    return "KAFKA_" + name.upper().replace(".", "_")
