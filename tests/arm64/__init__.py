"""An arm64 machine under emulation, on which the golden digests are computed again."""
