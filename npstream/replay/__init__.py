"""Replay: the same processor over a file or a range of a topic, without touching the live group."""
