"""Events in, decisions and dead letters out, snapshots to bytes and back. Pure: no clock, no I/O, no randomness."""
