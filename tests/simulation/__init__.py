"""A Kafka cluster in memory, and workers on it that are driven through everything that can go wrong, from a seed."""
