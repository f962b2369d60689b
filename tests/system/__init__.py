"""The whole system on a real broker: worker processes that are killed and stopped, and the oracle they must equal."""
