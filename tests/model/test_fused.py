"""No compiled function rounds once where it should round twice."""

import runpy
from pathlib import Path
from typing import Any

import numba
import pytest

from npstream.jit import DISABLED
from tests.model.fused import in_module, machine_of, modules

WARM = Path(__file__).parents[2] / "deploy/warm.py"
# Processors that have fused multiply-adds, of the widest vectors.
MACHINES = {"x86_64-unknown-linux-gnu": "x86-64-v4", "aarch64-unknown-linux-gnu": "neoverse-v1"}

pytestmark = pytest.mark.skipif(DISABLED, reason="nothing is compiled")


@pytest.fixture(params=[*MACHINES.items()], ids=[*MACHINES])
def machine(request: pytest.FixtureRequest) -> Any:
    """A machine with fused multiply-adds."""
    return machine_of(*request.param)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_compiled_function_holds_a_fused_multiply_add(machine: Any) -> None:
    """Nothing that the worker runs, compiled for processors that could."""
    runpy.run_path(str(WARM))["warm"]()

    found = {name: in_module(module, machine) for name, module in modules()}

    assert {"npstream.model.kernel.run", "npstream.partition.joining.join"} <= {*found}
    assert {name: fused for name, fused in found.items() if fused} == {}


@pytest.mark.parametrize("vector", [False, True])
def test_a_fused_multiply_add_is_found(machine: Any, vector: bool) -> None:
    """In what the compiler makes when it may fuse, one by one or in vectors."""

    def scaled(x: Any, y: Any, n: int, step: int) -> None:
        for i in range(0, n, 1 if vector else step):
            x[i] = 3.0 * x[i] + y[i]

    # Pointers: counting an array's references is code of this machine's own, which no other one can be given.
    types: Any = numba.types
    numbers = types.CPointer(numba.float64)
    njit: Any = numba.njit
    options = {"fastmath": {"contract"}, "no_cpython_wrapper": True}
    (only,) = njit([(numbers, numbers, numba.int64, numba.int64)], **options)(scaled).overloads.values()

    found = in_module(only.library._get_module_for_linking(), machine)

    assert "contract" in found
    assert [each for each in found if "fm" in each]
