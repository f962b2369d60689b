"""The image: its Dockerfile is clean, and its build steps work, as far as a plain folder can show."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from npstream.processor import BAKED
from tests.deploy.dockerfile import Build, instructions, sent
from tests.deploy.tools import DEPLOY, ROOT, full_check, program, run, said

DOCKERFILE = DEPLOY / "Dockerfile"
IGNORE = DEPLOY / "Dockerfile.dockerignore"
BUILD_S = 1800
COUNT_COMPILED = (
    "import warm; from npstream.model import kernel; warm.warm(); "
    "print(sum(kernel.run.stats.cache_hits.values()), sum(kernel.run.stats.cache_misses.values()))"
)


def test_hadolint_has_nothing_to_say() -> None:
    """The linter finds no error, warning or hint."""
    done = run(program("hadolint"), str(DOCKERFILE))

    assert (done.returncode, done.stdout) == (0, ""), said(done)


def test_the_context_is_small_and_complete() -> None:
    """Only the program, its licence, its locks and the warm-up are sent to the engine."""
    names = {str(path) for path in sent(ROOT, IGNORE)}

    assert "npstream/monitor/web/index.html" in names
    assert {name for name in names if not name.startswith("npstream/")} == {
        "LICENSE",
        "README.md",
        "pyproject.toml",
        "deploy/requirements.txt",
        "deploy/requirements-build.txt",
        "deploy/sbom.py",
        "deploy/warm.py",
    }


def test_the_image_is_started_as_nobody_and_by_exec() -> None:
    """A numeric user that is not root, and the worker itself as process 1, so that SIGTERM reaches it."""
    last = dict(instructions(DOCKERFILE.read_text()))

    assert last["USER"] == "10001:10001"
    assert last["ENTRYPOINT"] == '["npstream"]'
    assert last["HEALTHCHECK"] == "NONE"


def test_a_worker_looks_for_what_was_baked() -> None:
    """Code baked for one processor is of no use when the worker has another: both stages name the same ones."""
    found = list(instructions(DOCKERFILE.read_text()))
    (baking,) = [rest for word, rest in found if word == "RUN" and "warm.py" in rest]
    (chosen,) = [rest for word, rest in found if word == "ENV" and BAKED in rest]

    assert 'x86_64) baked="x86-64-v3 x86-64-v2" ;; *) baked="generic"' in baking
    assert f'{BAKED}="x86-64-v3 x86-64-v2"' in chosen


def test_the_base_can_be_named_by_its_digest() -> None:
    """Both stages are from one base, which is an argument of the build."""
    found = list(instructions(DOCKERFILE.read_text()))

    assert found[0] == ("ARG", "BASE=python:3.11-slim-bookworm")
    assert [rest.removesuffix(" AS build") for word, rest in found if word == "FROM"] == ["${BASE}"] * 2


def test_the_base_loses_its_installer(tmp_path: Path) -> None:
    """The last stage's one command takes away pip, what else the base has installed, and what could bring pip back."""
    library = tmp_path / "usr/local/lib/python3.11"
    gone = [tmp_path / "usr/local/bin/pip3", library / "site-packages/pip", library / "ensurepip"]
    kept = [tmp_path / "usr/local/bin/python3", library / "json"]
    for path in (*gone, *kept):
        path.mkdir(parents=True)
    last = DOCKERFILE.read_text().split("FROM ")[-1]
    (command,) = [rest for word, rest in instructions("FROM " + last) if word == "RUN"]

    Build(ROOT, tmp_path, []).run(command)

    assert [path.exists() for path in (*gone, *kept)] == [False] * 3 + [True] * 2


def test_the_image_is_built_for_both_processors() -> None:
    """The file for multi-platform builds names the Dockerfile, its arguments and the two platforms."""
    text = (DEPLOY / "docker-bake.hcl").read_text()
    arguments = {
        name.split("=")[0]
        for word, rest in instructions(DOCKERFILE.read_text())
        if word == "ARG"
        for name in rest.split()
    }

    assert 'dockerfile = "deploy/Dockerfile"' in text
    assert '"linux/amd64", "linux/arm64"' in text
    assert set(re.findall(r"^ +(\w+) += \w+$", text, re.MULTILINE)) == arguments


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Every RUN step of the Dockerfile carried out; the final stage's environment."""
    full_check()
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the image has Python 3.11; run the tests with it")
    build = Build(ROOT, tmp_path_factory.mktemp("image"), sent(ROOT, IGNORE))
    build.carry_out(DOCKERFILE.read_text())
    return build


@pytest.mark.slow
@pytest.mark.timeout(BUILD_S)
def test_the_build_steps_make_a_program_that_starts(image: Build) -> None:
    """Locked requirements install with their hashes, the wheel builds, and the command runs."""
    assert image.run("npstream --version").startswith("npstream, version ")
    assert "run" in image.run("npstream --help")


_PROTOBUF = """
from npstream.registry.client import Schema
from npstream.registry.protobuf import compile_protobuf

read = compile_protobuf(Schema("PROTOBUF", 'syntax = "proto3"; message M { string a = 1; }'), [])
print(read(bytes((0, 10, 4)) + b"text")["a"])
"""
"""Schemas in Protobuf are compiled without the build tools that the compiler's package asks for."""


@pytest.mark.slow
@pytest.mark.timeout(BUILD_S)
def test_the_image_holds_no_installer_and_no_build_tool(image: Build) -> None:
    """What could fetch or build further programs is not in the environment that is copied."""
    packages = {
        path.name.split("-")[0] for path in (image.root / "opt/npstream/lib/python3.11/site-packages").iterdir()
    }

    assert {"npstream", "numpy", "confluent_kafka"} <= packages
    assert not {"pip", "setuptools", "wheel", "hatchling", "pytest", "mypy"} & packages
    assert image.run(f"/opt/npstream/bin/python -c {shlex.quote(_PROTOBUF)}") == "text\n"


@pytest.mark.slow
@pytest.mark.timeout(BUILD_S)
def test_a_worker_of_the_image_compiles_nothing(image: Build) -> None:
    """All that a worker runs is in the baked cache, for every kind of model."""
    cache = Path(image.env["NUMBA_CACHE_DIR"])
    before = sorted(cache.rglob("*"))

    for processor in ("", "NUMBA_CPU_NAME=x86-64-v2 ", "NUMBA_CPU_NAME=x86-64-v3 "):
        hits, misses = image.run(f'{processor}PYTHONPATH=/src/deploy python -c "{COUNT_COMPILED}"').split()
        assert (int(hits) >= 1, int(misses)) == (True, 0), processor

    assert sorted(cache.rglob("*")) == before


@pytest.mark.slow
@pytest.mark.timeout(BUILD_S)
def test_the_image_lists_what_it_holds(image: Build) -> None:
    """The list has every installed package, each with hashes of the lock."""
    found = json.loads((image.root / "opt/npstream/sbom.cdx.json").read_text())

    assert {"numpy", "numba", "confluent-kafka"} <= {each["name"] for each in found["components"]}
    assert found["metadata"]["component"]["name"] == "npstream"
    assert all(each["externalReferences"][0]["hashes"] for each in found["components"])
