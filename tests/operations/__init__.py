"""A worker as an operator runs it: signals, probes, scrapes, long runs."""
