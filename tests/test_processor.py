"""Which baked machine code a worker takes."""

import pytest

from npstream.processor import BAKED, choose_processor

V2 = "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"
V3 = f"{V2} avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"


def cpuinfo(flags: str) -> str:
    """What Linux says of a processor with two cores."""
    return "".join(f"processor\t: {n}\nflags\t\t: fpu sse2 {flags}\nbugs\t\t: avx2\n\n" for n in range(2))


@pytest.mark.parametrize(
    ("machine", "flags", "expected"),
    [
        ("x86_64", V3, "x86-64-v3"),
        ("x86_64", V3.replace(" bmi2", ""), "x86-64-v2"),
        ("x86_64", V2, "x86-64-v2"),
        ("x86_64", V3.replace("popcnt ", ""), "x86-64"),
        ("x86_64", "", "x86-64"),
        ("aarch64", "", "generic"),
    ],
)
def test_the_best_baked_code_that_the_processor_has_is_taken(machine: str, flags: str, expected: str) -> None:
    """A missing instruction, of a lower level too, leads to the next one: never to one that would be illegal."""
    environment = {BAKED: "x86-64-v3 x86-64-v2"}

    choose_processor(environment, machine, cpuinfo(flags))

    assert environment["NUMBA_CPU_NAME"] == expected


@pytest.mark.parametrize("environment", [{}, {BAKED: "x86-64-v2", "NUMBA_CPU_NAME": "skylake"}])
def test_what_was_chosen_by_hand_stays(environment: dict[str, str]) -> None:
    """Outside of the image, and where an operator has decided, nothing is changed."""
    before = dict(environment)

    choose_processor(environment, "x86_64", cpuinfo(V3))

    assert environment == before
