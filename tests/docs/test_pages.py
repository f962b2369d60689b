"""Every page: generated parts are in step, links lead somewhere, and it says who should read it."""

import re
from pathlib import Path

import pytest

from tests.docs.generated import SECTIONS, rendered
from tests.docs.pages import PAGES, README, ROOT, anchors, blocks, commands, links, name_of

README_MAX_BYTES = 10_000
"""A first page is read in five minutes, or not at all."""

# Whoever opens the first page knows why, and the list of licences is a list.
FOR_EVERYBODY = ("README.md", "deploy/LICENSES.md")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_generated_parts_are_in_step(page: Path) -> None:
    """`make docs` would change nothing."""
    assert rendered(page.read_text()) == page.read_text()


def test_every_generated_part_has_one_place() -> None:
    """No part is forgotten, and none is twice."""
    found = [name for page in PAGES for name in re.findall(r"<!-- begin (\w+) -->", page.read_text())]

    assert sorted(found) == sorted(SECTIONS)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    """Every link names a file of the project, and where it names a heading, the file has it."""
    missing = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append(link)

    assert missing == []


def test_every_page_is_found_from_the_readme() -> None:
    """Following links from the README, a reader comes to every page."""
    reached, left = set(), [README]
    while left:
        page = left.pop()
        reached.add(page)
        targets = {(page.parent / link.partition("#")[0]).resolve() for link in links(page)}
        left += [target for target in targets & set(PAGES) if target not in reached]

    assert [name_of(page) for page in PAGES if page not in reached] == []


@pytest.mark.parametrize("page", [p for p in PAGES if name_of(p) not in FOR_EVERYBODY], ids=name_of)
def test_a_page_says_who_reads_it(page: Path) -> None:
    """Title, then one paragraph that begins with the reader."""
    assert re.match(r"# .+\n\nFor whoever ", page.read_text())


def test_the_readme_is_short() -> None:
    """What grows goes to the page it belongs to."""
    assert len(README.read_bytes()) <= README_MAX_BYTES


def test_its_make_targets_exist() -> None:
    """Both commands at its top, and every other target that a page names, are in the Makefile."""
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {word for page in PAGES for word in re.findall(r"`make ([\w-]+)", page.read_text())}
    typed = [line.split()[1] for line in commands(README, "make")]

    assert typed == ["demo", "test"]
    assert named | set(typed) <= targets


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_files_of_its_commands_exist(page: Path) -> None:
    """A path into the project that a shell block names is there."""
    words = " ".join(blocks(page, "sh")).split()
    paths = [word for word in words if re.match(r"(config|deploy|npstream|tests)/", word)]

    assert [path for path in paths if not (ROOT / path).exists()] == []
