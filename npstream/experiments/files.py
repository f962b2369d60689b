"""The study reads the same files as every other command."""

from npstream.files import READERS, read

__all__ = ["READERS", "read"]
