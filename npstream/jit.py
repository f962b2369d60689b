"""The one decorator every compiled function carries.

No fast-math, no division checks, the GIL released, no reference counting (the
functions allocate nothing, and counting the arrays of a state would cost more
than an event), machine code kept on disk.

A function that others call is a part of them, and becomes machine code only inside of
what Python calls (`parts`).

Numba names its disk cache after the file of the decorated function alone: a
changed helper in another file would leave stale machine code in the cache, and with
it the old bits. Here a cache entry is named after the source of every file in a folder that
holds one, since constants of the others are compiled in as well.
"""

import hashlib
import importlib
import inspect
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from npstream.processor import choose_for_this_process

choose_for_this_process()  # numba reads its environment when it is imported

import numba  # noqa: E402

F = TypeVar("F", bound=Callable[..., object])
Load = Callable[[object, object], object | None]

DISABLED: bool = bool(getattr(numba.config, "DISABLE_JIT", False))
"""True under NUMBA_DISABLE_JIT=1: the same functions run as plain Python."""

HAS_PARTS: bool = numba.__version__.startswith("0.68.")
"""Whether `parts` knows this version from inside; by another one every function is compiled in full."""

# Untyped, since the switch for reference counting is not among numba's typed options.
_njit: Any = numba.njit
_unliteral: Any = numba.types.unliteral


def jit(function: F) -> F:
    """Compile `function` on its first call for each signature; plain Python when numba is disabled.

    Does not fail without a writable cache directory: it then compiles again in every process.
    """
    return _compile(function, inline=False)


def jit_inline(function: F) -> F:
    """Like `jit`, and copied into its callers.

    For functions that take a whole state: passing its hundred words on the stack costs more than their work.
    """
    return _compile(function, inline=True)


def _compile(function: F, *, inline: bool) -> F:
    if DISABLED:
        return function
    options = {"nogil": True, "fastmath": False, "error_model": "numpy", "boundscheck": False, "_nrt": False}
    options["no_cfunc_wrapper"] = True
    if not HAS_PARTS:
        compiled = _njit(**options, forceinline=inline)(function)
        _forget_literals(compiled)
        _try_cache(compiled)
        return cast(F, compiled)
    parts: Any = importlib.import_module("npstream.parts")

    @cache
    def part() -> Any:
        inner = {"no_cpython_wrapper": True, "forceinline": inline, "pipeline_class": parts.PartCompiler}
        made = _njit(**options, **inner)(function)
        _forget_literals(made)
        _try_cache(made, ".part")
        return made

    compiled = _njit(**options, pipeline_class=parts.WholeCompiler)(function)
    # Numba asks these two about a function that a compiled one calls.
    compiled.get_call_template = lambda args, kws: part().get_call_template(args, kws)
    compiled.get_overload = lambda signature: part().get_overload(signature)
    _try_cache(compiled)
    return cast(F, compiled)


def _forget_literals(dispatcher: Any) -> None:
    """One compilation serves constants and variables.

    Numba compiles a function again for each constant that it is called with. Copied into its caller, the general
    form knows the constant as well.
    """
    template = dispatcher.get_call_template

    def general(args: Any, kws: Any) -> Any:
        return template(tuple(map(_unliteral, args)), {name: _unliteral(kind) for name, kind in kws.items()})

    dispatcher.get_call_template = general


def _try_cache(dispatcher: Any, suffix: str = "") -> None:
    """Best effort. Numba raises RuntimeError when no directory is writable, and its internals may move."""
    try:
        caching: Any = importlib.import_module("numba.core.caching")
        kept = caching.FunctionCache(dispatcher.py_func)
        name = f"{kept._impl.filename_base}.{_source_digest()}{suffix}"
        kept._cache_file = _cache_file(caching, kept.cache_path, name)
        folder = _baked_folder(caching, dispatcher.py_func, name)
        if folder is not None:
            baked = caching.FunctionCache(dispatcher.py_func)
            baked._cache_file = _cache_file(caching, folder, name)
            kept.load_overload = _first_of(baked.load_overload, kept.load_overload)
        dispatcher._cache = kept
    except (RuntimeError, ImportError, AttributeError, TypeError, OSError):
        return


def _baked_folder(caching: Any, function: Callable[..., object], name: str) -> str | None:
    """Where NUMBA_CACHE_DIR keeps a function's machine code that can only be read, as in an image on a read-only root.

    Numba by itself passes over a folder it cannot write to, whatever is in it.
    """
    if not getattr(numba.config, "CACHE_DIR", ""):
        return None
    folder: str = caching.UserProvidedCacheLocator(function, inspect.getfile(function)).get_cache_path()
    return folder if Path(folder, f"{name}.nbi").exists() and not os.access(folder, os.W_OK) else None


def _cache_file(caching: Any, folder: str, name: str) -> Any:
    return caching.IndexDataCacheFile(cache_path=folder, filename_base=name, source_stamp=_source_digest())


def _first_of(baked: Load, kept: Load) -> Load:
    """Baked code; where there is none for this processor, what an earlier start has compiled and kept elsewhere."""

    def load(signature: object, target: object) -> object | None:
        found = baked(signature, target)
        return kept(signature, target) if found is None else found

    return load


@cache
def _source_digest() -> str:
    digest = hashlib.blake2b(digest_size=8)
    sources = {path: path.read_bytes() for path in sorted(Path(__file__).parent.rglob("*.py"))}
    folders = {path.parent for path, source in sources.items() if b"@jit" in source}
    for path, source in sources.items():
        if path.parent in folders:
            digest.update(path.name.encode() + b"\0" + source)
    return digest.hexdigest()
