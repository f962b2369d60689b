"""What an environment holds, as a CycloneDX list: every installed package with its version, licence and hashes.

    python deploy/sbom.py /opt/npstream/lib/python3.11/site-packages > sbom.cdx.json

The hashes are those of requirements.txt, of which one was checked when the
package was installed. A package that the lock does not name ends it with 1: it
came from somewhere else. The same environment gives the same bytes.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
OWN = "npstream"

Locked = Mapping[tuple[str, str], Sequence[str]]
"""The SHA-256 hashes of what may be installed, by name and version."""


def locked(text: str) -> Locked:
    """What a requirements file with hashes allows."""
    found: dict[tuple[str, str], list[str]] = {}
    hashes: list[str] = []
    for line in text.splitlines():
        if pinned := re.match(r"([A-Za-z0-9][\w.-]*)==([\w.!+-]+)", line):
            hashes = found.setdefault((canonical(pinned[1]), pinned[2]), [])
        hashes += re.findall(r"--hash=sha256:([0-9a-f]{64})", line)
    return found


def canonical(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def document(installed: Sequence[Distribution], allowed: Locked) -> dict[str, Any]:
    """The list. Raises `ValueError` naming what is installed and not allowed."""
    packages = sorted(((canonical(each.name), each.version, each) for each in installed), key=lambda found: found[:2])
    foreign = [f"{name} {version}" for name, version, _ in packages if name != OWN and (name, version) not in allowed]
    if foreign:
        raise ValueError(f"not in requirements.txt: {', '.join(foreign)}")
    own = next((_component(name, version, each, ()) for name, version, each in packages if name == OWN), None)
    others = [
        _component(name, version, each, allowed[name, version]) for name, version, each in packages if name != OWN
    ]
    about = {} if own is None else {"metadata": {"component": {**own, "type": "application"}}}
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, **about, "components": others}


def _component(name: str, version: str, found: Distribution, hashes: Sequence[str]) -> dict[str, Any]:
    purl = f"pkg:pypi/{name}@{version}"
    component: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    expression = found.metadata.get("License-Expression")
    if expression is not None:
        component["licenses"] = [{"expression": expression}]
    if hashes:
        files = [{"alg": "SHA-256", "content": each} for each in sorted(hashes)]
        page = f"https://pypi.org/project/{name}/{version}/"
        component["externalReferences"] = [{"type": "distribution", "url": page, "hashes": files}]
    return component


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the list of the folder that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the site-packages of an environment")
    parser.add_argument("--requirements", type=Path, default=REQUIREMENTS, help="default: beside this program")
    options = parser.parse_args(arguments)
    try:
        found = document(list(distributions(path=[str(options.folder)])), locked(options.requirements.read_text()))
    except ValueError as error:
        print(f"{options.folder}: {error}", file=sys.stderr)
        return 1
    print(json.dumps(found, indent=1, sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
