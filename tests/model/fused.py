"""Fused multiply-adds in compiled functions: they round once where x * y + z rounds twice, on some processors only."""

import re
import sys
from collections.abc import Iterator
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core.dispatcher import Dispatcher

_INSTRUCTIONS = re.compile(
    r"^\s+(vfn?m(?:add|sub)\w*"  # x86-64
    r"|(?:b?fn?m(?:add|sub|la|ls|ad|sb)|fcmla)\w*"  # arm64: scalar, Neon, SVE
    r"|(?:bl?|callq?|jmp)\s+fmaf?)\b",  # the C library's
    re.MULTILINE,
)
_FLAGS = re.compile(r"= (?:tail )?(?:fadd|fsub|fmul|fdiv|fneg|call)(?: \w+)*? (fast|contract|reassoc)\b")
_INTRINSICS = re.compile(r"@(llvm\.(?:fma|fmuladd)\.\w+)")


def of_this_process() -> Iterator[tuple[str, list[str]]]:
    """Each function that was compiled or loaded here, and what fuses in its code for this machine."""
    chosen = getattr(numba.config, "CPU_NAME", None)
    machine = machine_of(llvm.get_default_triple(), chosen or llvm.get_host_cpu_name())
    for name, module in modules():
        yield name, in_module(module, machine)


def modules() -> Iterator[tuple[str, Any]]:
    """Each compiled function of npstream, by its name, as LLVM's module: with all that it calls."""
    functions: dict[int, Any] = {
        id(value): value
        for name, module in list(sys.modules.items())
        if name.startswith("npstream")
        for value in vars(module).values()
        if isinstance(value, Dispatcher)
    }
    for function in functions.values():
        for compiled in function.overloads.values():
            yield f"{function.__module__}.{function.__name__}", compiled.library._get_module_for_linking()


def in_module(module: Any, machine: Any) -> list[str]:
    """What fuses, or allows to fuse, once the module is machine code for `machine`."""
    module = llvm.parse_bitcode(module.as_bitcode())
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    text = str(module)
    if "@llvm.x86." in text and not machine.triple.startswith("x86"):
        raise ValueError("holds instructions of another processor, at which LLVM would end this process")
    found = [*_FLAGS.findall(text), *_INTRINSICS.findall(text)]
    return sorted({*found, *_INSTRUCTIONS.findall(machine.emit_assembly(module))})


def machine_of(triple: str, cpu: str) -> Any:
    """A machine to make code for, whatever the one is that this runs on."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=3)
