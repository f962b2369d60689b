"""The broker on Kafka; the only package that speaks to confluent_kafka."""

from npstream.kafka.broker import KafkaBroker
from npstream.kafka.config import KafkaConfig
from npstream.kafka.log import KafkaLog
from npstream.kafka.state import KafkaStateReader

__all__ = ["KafkaBroker", "KafkaConfig", "KafkaLog", "KafkaStateReader"]
