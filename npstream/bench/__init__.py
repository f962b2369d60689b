"""Measuring the pipeline: a worker on a broker beside the least that exactly-once costs."""
