"""What the image installs: its licences, and known weaknesses.

    python deploy/dependencies.py licences    write deploy/LICENSES.md from the installed packages' metadata
    python deploy/dependencies.py audit       ask the package index for published weaknesses of every pinned version

`audit` ends with 1 when there are any. Where the index does not respond it says
so, loudly, and ends with 0: nothing was found, and nothing was looked at.
"""

import argparse
import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from importlib.metadata import PackageMetadata, metadata
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
LICENCES = Path(__file__).with_name("LICENSES.md")
INDEX = "https://pypi.org/pypi"
_TIMEOUT_S = 15.0
_HEAD = """\
# Licences of what the image installs

Written by `python deploy/dependencies.py licences` from the metadata of the packages in requirements.txt; a test keeps
both in step. npstream itself is Apache-2.0.

| package | version | licence |
|---|---|---|
"""


def pinned(text: str) -> list[tuple[str, str]]:
    """Every name and version of a requirements file, in its order; a name may have a version per Python."""
    return re.findall(r"^([A-Za-z0-9][\w.-]*)==([\w.!+-]+)", text, re.MULTILINE)


def licence(found: PackageMetadata) -> str:
    """What a package's metadata says: its expression, else its classifiers, else its own words."""
    if "License-Expression" in found:
        return found["License-Expression"]
    names = [line.rsplit(" :: ", 1)[1] for line in found.get_all("Classifier") or () if line.startswith("License ::")]
    own = found["License"].splitlines() if "License" in found else []
    return " OR ".join(names) or (own[0] if own else "unknown")


def licences(text: str) -> str:
    """The page of a requirements file whose packages are installed."""
    versions: dict[str, list[str]] = {}
    for name, version in pinned(text):
        versions.setdefault(name, []).append(version)
    rows = [f"| {name} | {', '.join(known)} | {licence(metadata(name))} |\n" for name, known in versions.items()]
    return _HEAD + "".join(rows)


def weaknesses(index: str, name: str, version: str) -> list[str]:
    """What is published against one version, a line each. Raises `OSError` or `ValueError` when that cannot be had."""
    with urllib.request.urlopen(f"{index}/{name}/{version}/json", timeout=_TIMEOUT_S) as response:
        found = json.load(response)["vulnerabilities"]
    return [
        f"{name} {version}: {one['id']}, fixed in {', '.join(one.get('fixed_in') or ['no version yet'])}: "
        f"{one.get('link') or one.get('summary') or ''}".rstrip(": ")
        for one in found
        if not one.get("withdrawn")
    ]


def audit(index: str, packages: Sequence[tuple[str, str]]) -> int:
    """Print every weakness; 1 when there is one."""
    found: list[str] = []
    silent: list[str] = []
    for name, version in packages:
        try:
            found += weaknesses(index, name, version)
        except (OSError, ValueError, KeyError) as error:
            silent.append(f"{name} {version} ({error})")
    for line in found:
        print(line)
    if silent:
        print(f"NOT AUDITED: the index does not respond for {len(silent)} of {len(packages)}: {silent[0]}", flush=True)
        print("Run this again where the package index can be reached.", file=sys.stderr)
    print(f"{len(packages) - len(silent)} of {len(packages)} pinned versions looked up, {len(found)} weaknesses")
    return 1 if found else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["licences", "audit"])
    parser.add_argument("--index", default=INDEX, help="where to ask (default: %(default)s)")
    options = parser.parse_args(arguments)
    text = REQUIREMENTS.read_text()
    if options.task == "licences":
        LICENCES.write_text(licences(text))
        return 0
    return audit(options.index, pinned(text))


if __name__ == "__main__":
    sys.exit(main())
