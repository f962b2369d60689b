"""The parts of the pages that are made from the code. `python -m tests.docs.generated` writes them again."""

import ast
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import yaml

from npstream.cli import COMMANDS
from npstream.cli.exits import MEANINGS
from npstream.codec.event import REASONS
from npstream.observe import METRICS
from npstream.settings import reference
from tests.docs.pages import PAGES, ROOT

_PACKAGE = ROOT / "npstream"
_RULES = ROOT / "deploy" / "alerts" / "npstream.rules.yaml"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines)


def _reasons() -> str:
    return _table(("reason", "meaning"), [(f"`{name}`", text) for name, text in REASONS.items()])


def _commands() -> str:
    return _table(("command", "what it does"), [(f"`npstream {name}`", text) for name, (_, text) in COMMANDS.items()])


def metrics() -> str:
    """Every metric that is exported."""
    columns = ("metric", "kind", "unit", "labels", "meaning")
    return _table(columns, [(f"`{m.name}`", m.kind, m.unit, ", ".join(m.labels) or "–", m.help) for m in METRICS])


def _exits() -> str:
    return _table(("code", "meaning"), [(str(code), text) for code, text in MEANINGS.items()])


def _settings() -> str:
    rows = []
    for entry in reference():
        default = "" if entry.default is None else f"`{entry.default}`"
        rows.append((f"`{entry.path}`", entry.takes, default, entry.description))
    return _table(("setting", "takes", "default", "meaning"), rows)


def _alerts() -> str:
    rows = []
    for group in yaml.safe_load(_RULES.read_text())["groups"]:
        for rule in group["rules"]:
            name, labels = rule["alert"], dict(rule["labels"])
            severity = ", ".join([labels.pop("severity"), *(f"{label} {value}" for label, value in labels.items())])
            about = re.sub(r"{{.*?}}", "…", " ".join(rule["annotations"]["description"].split()))
            rows.append((f"[{name}](README.md#{name.lower()})", severity, rule["for"], about))
    return _table(("alert", "severity", "after", "meaning"), rows)


def _files() -> str:
    return "\n\n".join(_room(path) for layer in _layers() for path in layer)


def _layers() -> Iterator[list[Path]]:
    """The rooms from top to bottom, as the import contract has them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    for layer in next(contract["layers"] for contract in contracts if contract["type"] == "layers"):
        names = re.findall(r"npstream\.(\w+)", layer)
        yield [path if (path := _PACKAGE / name).is_dir() else path.with_suffix(".py") for name in names]


def _room(room: Path) -> str:
    if room.is_file():
        return f"**`{room.name}`** {_summary(room)}"
    files = [file for file in sorted(room.glob("*.py")) if file.name != "__init__.py"]
    lines = [f"- `{file.name}` {_summary(file)}" for file in files]
    return "\n".join([f"**`{room.name}/`** {_summary(room / '__init__.py')}\n", *lines])


def _summary(source: Path) -> str:
    """The first paragraph of a file's docstring."""
    text = ast.get_docstring(ast.parse(source.read_text())) or ""
    return " ".join(text.partition("\n\n")[0].split())


SECTIONS: dict[str, Callable[[], str]] = {
    "reasons": _reasons,
    "commands": _commands,
    "exits": _exits,
    "settings": _settings,
    "alerts": _alerts,
    "metrics": metrics,
    "files": _files,
}


def rendered(text: str) -> str:
    """A page with every generated part made again. Raises KeyError for a part that nothing makes."""
    pattern = re.compile(r"<!-- begin (\w+) -->\n.*?<!-- end \1 -->", re.DOTALL)
    return pattern.sub(lambda m: f"<!-- begin {m[1]} -->\n{SECTIONS[m[1]]()}\n<!-- end {m[1]} -->", text)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(rendered(page.read_text()))
