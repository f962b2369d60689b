"""npstream/DESIGN.md: every name on the map exists, and every file is on it."""

import pkgutil
import re
from pathlib import Path

import npstream
from tests.docs.pages import ROOT

PACKAGE = ROOT / "npstream"
TEXT = (PACKAGE / "DESIGN.md").read_text()
WALK, _, FILES = TEXT.partition("## Every file")
ROOMS = {module.name for module in pkgutil.iter_modules(npstream.__path__)}
NAMES = sorted(
    {name for name in re.findall(r"`(\w+(?:\.\w+)+)`", WALK) if name.split(".")[0] in ROOMS and name[-3:] != ".py"}
)


def test_each_name_exists() -> None:
    """A module, a function, a class or its method: whoever searches for it finds it."""
    assert len(NAMES) > 100
    assert [name for name in NAMES if not exists(f"npstream.{name}")] == []


def exists(name: str) -> bool:
    """Whether a dotted name leads to something."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def test_the_files_it_names_exist() -> None:
    """Files and folders by their path in the project."""
    named = re.findall(r"`(tests/[\w/.]+)`", TEXT)

    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_both_paths_are_lists_of_hops() -> None:
    """Each step of an event, and of a crash, names at least one place in the code."""
    for title in ("## The path of one event", "## The path of one crash"):
        steps = re.split(r"^\d+\. ", WALK.partition(title)[2].partition("\n## ")[0], flags=re.MULTILINE)[1:]

        assert len(steps) >= 8
        assert [step for step in steps if not any(f"`{name}`" in step for name in NAMES)] == []


def test_every_file_is_on_the_map() -> None:
    """All files but the package's own two entrances, each in its room."""
    assert sorted(mapped()) == [
        path for path in sorted(PACKAGE.rglob("*.py")) if path.name not in ("__init__.py", "__main__.py")
    ]


def mapped() -> list[Path]:
    """The files of the generated list, which is made by rooms."""
    found, room = [], PACKAGE
    for bold, name in re.findall(r"^(\*\*|- )`([\w./]+)`", FILES, re.MULTILINE):
        if name.endswith("/"):
            room = PACKAGE / name
        else:
            found.append((PACKAGE if bold == "**" else room) / name)
    return found
