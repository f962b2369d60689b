"""npstream: exactly-once online Neyman-Pearson classification on Kafka streams."""

__version__ = "0.1.0"
