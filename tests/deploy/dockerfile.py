"""A Dockerfile carried out in a plain folder, for machines without a container engine.

Understands what ours uses: ARG, ENV, WORKDIR, COPY, RUN, and FROM as a new
stage. All stages share one folder, so that COPY --from is a check that the
source exists. The base image is the Python that runs the tests; absolute paths
of the image are put below the folder.
"""

import fnmatch
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

OWN_PLACES = ("opt", "src", "tmp", "usr/local")
"""Top folders of the image that its build writes to."""

_PLACE = re.compile(rf"(?<![\w./$-])/({'|'.join(OWN_PLACES)})(?=[/\s\"':]|$)")


class Instruction(NamedTuple):
    """One line of a Dockerfile, continuations joined."""

    word: str
    rest: str


def instructions(text: str) -> Iterator[Instruction]:
    """All instructions in order, comments left out."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        word, _, rest = line.strip().partition(" ")
        yield Instruction(word.upper(), " ".join(rest.split()))


def sent(context: Path, ignore: Path) -> list[Path]:
    """The files of the context that the ignore file lets through; the last pattern that matches decides."""
    patterns = [line for line in ignore.read_text().splitlines() if line and not line.startswith("#")]
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=context,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout.splitlines()
    return [Path(name) for name in tracked if _let_through(name, patterns)]


def _let_through(name: str, patterns: list[str]) -> bool:
    parents = [str(path) for path in Path(name).parents][:-1]
    allowed = True
    for pattern in patterns:
        wanted = pattern.removeprefix("!").removeprefix("**/")
        deep = pattern.removeprefix("!").startswith("**/")
        paths = [*Path(name).parts] if deep else [name, *parents]
        if any(fnmatch.fnmatch(path, wanted) for path in paths):
            allowed = pattern.startswith("!")
    return allowed


@dataclass
class Build:
    """A Dockerfile on its way; `env` is that of the stage reached."""

    context: Path
    root: Path
    files: list[Path]
    env: dict[str, str] = field(default_factory=dict)
    workdir: Path = field(init=False)
    commands: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.workdir = self.root

    def carry_out(self, text: str) -> None:
        """Every instruction in order; raises CalledProcessError with the output of a step that failed."""
        arguments: dict[str, str] = {}
        for word, rest in instructions(text):
            rest = re.sub(r"\$\{(\w+)\}", lambda match: arguments.get(match[1], match[0]), rest)
            match word:
                case "ARG":
                    name, _, value = rest.partition("=")
                    arguments.setdefault(name, value)
                case "FROM":
                    self.env, self.workdir = {}, self.root
                case "ENV":
                    self.env.update(self._assignments(rest))
                case "WORKDIR":
                    self.workdir = self._path(rest)
                    self.workdir.mkdir(parents=True, exist_ok=True)
                case "COPY":
                    self._copy(shlex.split(rest))
                case "RUN":
                    self.run(rest)

    def run(self, command: str, timeout_s: float = 900) -> str:
        """What a command writes, run in the stage reached."""
        placed = _PLACE.sub(lambda match: f"{self.root}/{match[1]}", command)
        self.commands.append(placed)
        done = subprocess.run(
            ["/bin/bash", "-o", "pipefail", "-c", placed],
            cwd=self.workdir,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if done.returncode != 0:
            raise AssertionError(f"{command}\nended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def environment(self) -> dict[str, str]:
        """The stage's variables over what this machine needs to reach a package index."""
        kept = ("PIP_", "SSL_", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
        own = {name: value for name, value in os.environ.items() if name.startswith(kept)}
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        return {**own, "PATH": path, "HOME": str(self.root), **self.env}

    def _assignments(self, rest: str) -> dict[str, str]:
        pairs = dict(part.split("=", 1) for part in shlex.split(rest))
        found = {name: _PLACE.sub(lambda match: f"{self.root}/{match[1]}", value) for name, value in pairs.items()}
        if "PATH" in found:
            found["PATH"] = found["PATH"].replace("$PATH", self.environment()["PATH"])
        return found

    def _copy(self, words: list[str]) -> None:
        *sources, target = words
        if sources[0].startswith("--from="):
            assert sources[1:] == [target]
            assert self._path(target).exists()
            return
        for source in sources:
            for file in self._matching(source):
                under = file.relative_to(source) if file != Path(source) else Path()
                place = self.workdir / target
                goal = place / (under if under.parts else file.name) if _is_folder(source, target, sources) else place
                goal.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.context / file, goal)

    def _matching(self, source: str) -> list[Path]:
        found = [file for file in self.files if file == Path(source) or Path(source) in file.parents]
        assert found, f"COPY {source}: the ignore file lets nothing of it through"
        return found

    def _path(self, path: str) -> Path:
        return Path(_PLACE.sub(lambda match: f"{self.root}/{match[1]}", path))


def _is_folder(source: str, target: str, sources: list[str]) -> bool:
    return target.endswith("/") or target in (".", "./") or len(sources) > 1 or "." not in Path(source).name
