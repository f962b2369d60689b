"""How functions that carry `@jit` are compiled: one by one to simplified code, and as a whole where Python calls them.

By itself numba optimises each function with all that it calls, makes machine code of it
and a way in from Python, though most are only ever called by others: what is below ten
others is optimised eleven times. Here a function that is called by others is a part. It
is taken into what Python calls, and only that is optimised and made machine code. The
results have the same bits: no optimisation may change what a number comes to.
"""

from typing import Any, ClassVar

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags


class _Flags(Flags):
    """Flags that are compared by identity: numba does it thousands of times for each function, value by value."""

    __slots__ = ()
    _known: ClassVar[dict[str, "_Flags"]] = {}

    @classmethod
    def of(cls, flags: Any) -> "_Flags":
        """The same object for the same flags, which nobody changes."""
        return cls._known.setdefault(repr(flags), cls(flags))

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def copy(self) -> "_Flags":
        """Itself."""
        return self


class WholeCompiler(CompilerBase):
    """Compiles what Python calls, with all its parts."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.state.flags = _Flags.of(self.state.flags)

    def define_pipelines(self) -> list[Any]:
        """Numba's own."""
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


class PartCompiler(WholeCompiler):
    """Compiles what compiled functions call, as far as they need it."""

    def define_pipelines(self) -> list[Any]:
        """Numba's own, whose result is not made machine code."""
        self.state.library = _Library(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


class _Library(JITCodeLibrary):
    """Simplified code of one function and all that it calls, for others to take in."""

    @property
    def codegen(self) -> Any:
        """Nobody: an environment is for calls from Python."""
        return _NoEnvironments

    def get_pointer_to_function(self, name: str) -> int:
        """There is none."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> Any:
        """What is kept on disk."""
        return self.serialize_using_bitcode()

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _NoEnvironments:
    @staticmethod
    def set_env(_name: str, _environment: object) -> None:
        """Nothing looks for it."""
