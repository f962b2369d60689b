"""When a broker is ready, and when its topics are: asked for, never guessed from the time that has passed."""

import socket
import time
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

_TURN_S = 0.05
_CALL_TIMEOUT_S = 2.0
_AS_THE_CLUSTER_DOES = -1


def wait_ready(bootstrap: str, timeout_s: float, check_alive: Callable[[], None]) -> None:
    """Return when the broker serves requests; `check_alive` raises when waiting has become pointless.

    Raises `TimeoutError`.
    """
    deadline = time.monotonic() + timeout_s
    # The socket first: a client that meets a closed port backs off for longer than the broker needs.
    _wait(lambda: _accepts(bootstrap), deadline, check_alive, f"nobody listens on {bootstrap}")
    admin = _admin(bootstrap)
    _wait(lambda: _responds(admin), deadline, check_alive, f"{bootstrap} accepts connections but serves no request")


def wait_in_sync(bootstrap: str, brokers: int, timeout_s: float) -> None:
    """Return when so many brokers are there and every replica is in sync: only then may the next one be stopped.

    Raises `TimeoutError`.
    """
    deadline = time.monotonic() + timeout_s
    admin = _admin(bootstrap)
    _wait(lambda: _in_sync(admin, brokers), deadline, lambda: None, f"replicas at {bootstrap} are out of sync")


def create_topics(
    bootstrap: str, topics: Mapping[str, int], config: Mapping[str, str] | None = None, timeout_s: float = 30.0
) -> None:
    """Create topics (name to partition count) and return when every partition has a leader.

    The brokers' default says how many replicas. Records are kept forever unless `config` says otherwise. Raises
    `KafkaException` when the broker refuses, `TimeoutError`.
    """
    admin = _admin(bootstrap)
    settings = {"retention.ms": "-1", **(config or {})}
    asked = [
        NewTopic(name, count, replication_factor=_AS_THE_CLUSTER_DOES, config=settings)
        for name, count in topics.items()
    ]
    for future in admin.create_topics(asked, operation_timeout=timeout_s, request_timeout=timeout_s).values():
        future.result(timeout=timeout_s)
    deadline = time.monotonic() + timeout_s
    _wait(lambda: _have_leaders(admin, topics), deadline, lambda: None, f"no leaders for {', '.join(topics)}")


def _admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def _wait(condition: Callable[[], bool], deadline: float, check_alive: Callable[[], None], failure: str) -> None:
    while not condition():
        check_alive()
        if time.monotonic() > deadline:
            raise TimeoutError(f"{failure}; read the broker's log")
        time.sleep(_TURN_S)


def _accepts(bootstrap: str) -> bool:
    host, port = bootstrap.split(",", maxsplit=1)[0].rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=_CALL_TIMEOUT_S).close()
    except OSError:
        return False
    return True


def _responds(admin: AdminClient) -> bool:
    try:
        return len(admin.list_topics(timeout=_CALL_TIMEOUT_S).brokers) > 0
    except KafkaException:
        return False


def _in_sync(admin: AdminClient, brokers: int) -> bool:
    try:
        known = admin.list_topics(timeout=_CALL_TIMEOUT_S)
    except KafkaException:
        return False
    partitions = [part for topic in known.topics.values() for part in topic.partitions.values()]
    return len(known.brokers) == brokers and all(len(part.isrs) == len(part.replicas) for part in partitions)


def _have_leaders(admin: AdminClient, topics: Mapping[str, int]) -> bool:
    try:
        known = admin.list_topics(timeout=_CALL_TIMEOUT_S).topics
    except KafkaException:
        return False
    return all(
        name in known and sum(part.leader >= 0 for part in known[name].partitions.values()) == count
        for name, count in topics.items()
    )
