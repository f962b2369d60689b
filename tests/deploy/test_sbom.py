"""The list of what an environment holds."""

import json
import sys
from importlib import util
from pathlib import Path
from types import ModuleType

import pytest

from tests.deploy.tools import DEPLOY

LOCK = """\
one-thing==1.0 \\
    --hash=sha256:{a} \\
    --hash=sha256:{b}
    # via somebody
other==2.5 ; python_version < "4" \\
    --hash=sha256:{c}
""".format(a="a" * 64, b="b" * 64, c="c" * 64)


def loaded() -> ModuleType:
    """The program, which is in no package."""
    spec = util.spec_from_file_location("sbom", DEPLOY / "sbom.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules["sbom"] = module
    spec.loader.exec_module(module)
    return module


sbom = loaded()


def install(folder: Path, name: str, version: str, *lines: str) -> None:
    """What an installer leaves of a package."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        "\n".join([f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}", *lines]) + "\n"
    )


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """A lock of two packages."""
    path = tmp_path / "requirements.txt"
    path.write_text(LOCK)
    return path


def test_what_is_installed_is_listed_with_its_hashes(
    tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names as indexes write them, in order, npstream as what the list is about; not what is only in the lock."""
    folder = tmp_path / "site-packages"
    install(folder, "One_Thing", "1.0", "License-Expression: MIT")
    install(folder, "npstream", "0.1")

    assert sbom.main([str(folder), "--requirements", str(lock)]) == 0

    found = json.loads(capsys.readouterr().out)
    (one,) = found["components"]
    assert (one["purl"], one["licenses"]) == ("pkg:pypi/one-thing@1.0", [{"expression": "MIT"}])
    assert [each["content"] for each in one["externalReferences"][0]["hashes"]] == ["a" * 64, "b" * 64]
    assert found["metadata"]["component"]["purl"] == "pkg:pypi/npstream@0.1"
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.5")


@pytest.mark.parametrize(("name", "version"), [("stranger", "1.0"), ("other", "2.6")])
def test_what_the_lock_does_not_name_is_refused(
    tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str], name: str, version: str
) -> None:
    """Another package or another version came from somewhere else."""
    folder = tmp_path / "site-packages"
    install(folder, name, version)

    assert sbom.main([str(folder), "--requirements", str(lock)]) == 1
    assert f"{name} {version}" in capsys.readouterr().err


def test_the_lock_of_the_image_can_be_read() -> None:
    """Every pinned version has hashes."""
    found = sbom.locked((DEPLOY / "requirements.txt").read_text())

    assert ("numpy" in {name for name, _ in found}, all(found.values())) == (True, True)
