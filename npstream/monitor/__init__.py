"""What an operator sees of a running worker: metrics, probes, status, the live page."""
