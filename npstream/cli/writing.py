"""Files that commands leave behind."""

from pathlib import Path

from npstream.errors import UsageError


def write_file(path: Path, content: str | bytes) -> None:
    """Write a whole file, its folder too; the old one stays until the new one is complete. Raises `UsageError`."""
    beside = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(content.encode() if isinstance(content, str) else content)
        beside.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; choose another place") from None


def check_writable(path: Path) -> None:
    """Find out before a long run that its result could not be written. Raises `UsageError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_name(f"{path.name}.part").open("wb"):
            pass
        path.with_name(f"{path.name}.part").unlink()
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; choose another place") from None
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a folder; name a file")
