"""The pages of the project, and what is in them: blocks of code, commands, headings, links."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [
    README,
    *sorted((ROOT / "config").glob("*.md")),
    *sorted((ROOT / "deploy").rglob("*.md")),
    *sorted((ROOT / "npstream").rglob("*.md")),
    ROOT / "tests" / "README.md",
]


def name_of(page: Path) -> str:
    """A page's path within the project."""
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def commands(page: Path, program: str) -> list[str]:
    """Every line of a page's shell blocks that calls a program, without its comment."""
    lines = "\n".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    return [line.split("  #")[0].strip() for line in lines if line.startswith(f"{program} ")]


def _prose(page: Path) -> str:
    """A page without its code."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def links(page: Path) -> list[str]:
    """Every link of a page that does not leave the project."""
    return re.findall(r"\]\((?!https?:)([^)\s]+)\)", _prose(page))
