"""What `make arm64` says when it cannot emulate."""

import re

import pytest

from tests.arm64.machine import check_tools
from tests.fetching import Missing


@pytest.mark.parametrize(
    ("installed", "user", "have_root", "expected"),
    [
        ("tar dpkg-deb", 0, False, "apt-get install qemu-user-static debootstrap"),
        ("tar dpkg-deb debootstrap", 1000, True, "apt-get install qemu-user-static"),
        ("tar dpkg-deb debootstrap qemu-aarch64-static", 1000, False, "run this once as root"),
    ],
)
def test_what_is_missing_is_named(installed: str, user: int, have_root: bool, expected: str) -> None:
    """Packages that are not installed are named, and so is the one step that only root can take."""
    with pytest.raises(Missing, match=re.escape(expected)):
        check_tools(lambda name: name if name in installed.split() else None, user, have_root=have_root)


def test_once_unpacked_only_the_emulator_is_needed() -> None:
    """Anybody may run what root has unpacked."""
    check_tools(lambda name: name if name == "qemu-aarch64-static" else None, 1000, have_root=True)
