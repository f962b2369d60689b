"""The first minute: a drifting stream, the real worker, and a picture of what it did."""
