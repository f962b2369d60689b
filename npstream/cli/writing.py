"""Files that commands leave behind."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from npstream.errors import UsageError


def write_file(path: Path, content: str | bytes) -> None:
    """Write a whole file, its folder too; the old one stays until the new one is complete. Raises `UsageError`."""
    with _unfinished(path) as beside:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)
        beside.replace(path)


def check_writable(path: Path) -> None:
    """Find out before a long run that its result could not be written. Raises `UsageError`."""
    with _unfinished(path) as beside:
        beside.write_bytes(b"")
        beside.unlink()


@contextmanager
def _unfinished(path: Path) -> Iterator[Path]:
    """The file to write before it takes its place. Makes its folder."""
    try:
        if path.is_dir():
            raise UsageError(f"cannot write {path}: it is a folder; name a file")
        path.parent.mkdir(parents=True, exist_ok=True)
        yield path.with_name(f"{path.name}.part")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; choose another place") from None
