"""Real Kafka brokers for the tests and for `make kafka`."""

from tests.broker.cluster import Cluster
from tests.broker.jar_kafka import JarKafka
from tests.broker.provider import Kafka, StartKafka, local_jars, provide_kafka
from tests.broker.readiness import create_topics

__all__ = ["Cluster", "JarKafka", "Kafka", "StartKafka", "create_topics", "local_jars", "provide_kafka"]
