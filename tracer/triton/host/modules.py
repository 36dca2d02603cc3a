"""The modules that stand in for ``triton`` and what lies in it, for as long as a session lasts."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

from ....ir.errors import TritonCompileError, TritonNameError, did_you_mean
from .. import language
from ..constexpr import Constexpr, bare, constexpr
from ..values.types import int_type
from . import testing
from .driver import Driver, GPUTarget
from .internal_testing import CANONICAL_TYPES, internal_testing
from .jit import (
    CompiledKernel,
    ConstexprFunction,
    JITCallable,
    JITFunction,
    KernelInterface,
    KernelParam,
    cdiv,
    constexpr_function,
    jit,
    next_power_of_2,
)
from .knobs import knobs
from .microscaling import MXFP4Tensor, MXScaleTensor
from .profiling import PROFILER, VIEWER
from .tensors import TensorDescriptor, TensorWrapper, reinterpret
from .tuning import Autotuner, Config, Heuristics, autotune, heuristics

__all__ = ["VERSION", "stand_in_modules", "standing_in"]

#: The version of Triton that scripts are told: the one whose language is followed.
VERSION = "3.5.0"
_NAME = "triton"


class _StandIn(ModuleType):
    """A module whose missing names are told as such."""

    def __init__(self, name: str, refused: Mapping[str, str]) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__spec__ = ModuleSpec(name, None, origin="kernscope's stand-in", is_package=True)
        self.__file__ = None
        self.__dict__["_kernscope_refused"] = refused

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        raise missing_name(self.__name__, name, self.__dict__)


def missing_name(module: str, name: str, known: Mapping[str, Any]) -> TritonNameError:
    """The error of a name that a stand-in lacks: refused, and why, or unknown."""
    why = known.get("_kernscope_refused", {}).get(name)
    if why is not None:
        return TritonNameError(f"{module}.{name} is refused by kernscope: {why}", help=_TABLE)
    public = [n for n in known if not n.startswith("_")]
    return TritonNameError(
        f"{module}.{name} is not known to kernscope", help=did_you_mean(name, public, alike=0.8, listed=_TABLE)
    )


_TABLE = "docs/triton.md lists every name of triton.language: whether it runs, or why it is refused"


#: ``triton.TritonError``, which scripts catch: what Triton's compiler would refuse.
_TritonError = TritonCompileError


class _OutOfResources(_TritonError):
    """``triton.OutOfResources``: never raised; what does not fit into scratch is a finding of the linter."""


class _InterpreterError(_TritonError):
    """``triton.InterpreterError``: never raised."""


class _MockTensor:
    """``triton.MockTensor``: a tensor's dtype for ``warmup``."""

    def __init__(self, dtype: Any, shape: Any = None) -> None:
        self.dtype, self.shape = dtype, [1] if shape is None else shape

    @staticmethod
    def wrap_dtype(argument: Any) -> Any:
        """A mock of a dtype of torch's; anything else as it is."""
        return _MockTensor(argument) if type(argument).__module__ == "torch" else argument

    @staticmethod
    def data_ptr() -> int:
        """No address."""
        return 0


class _Blas:
    """``CublasLt``, beside which scripts put their own matmul: torch's. ``b`` is transposed."""

    def __init__(self, workspace: Any) -> None:
        pass

    def matmul(self, a: Any, b: Any, c: Any) -> None:
        """``c = a @ b.T``."""
        c.copy_(a.float() @ b.float().T)


class _NullAllocator:
    """``triton.runtime._allocation.NullAllocator``, which is never asked."""


def _set_allocator(allocator: Any) -> None:
    """Kernels allocate nothing in global memory here: what they need a workspace for on a GPU needs none."""


def stand_in_modules() -> dict[str, ModuleType]:
    """All of them by name, made anew for a session: what a script writes on one is gone with it."""
    made: dict[str, ModuleType] = {}

    def module(name: str, names: Mapping[str, Any] | None = None, refused: Mapping[str, str] | None = None) -> None:
        new = made[name] = _StandIn(name, refused or {})
        new.__dict__.update(names or {})
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(made[parent], last, new)

    driver = Driver()
    tuned = {
        "Autotuner": Autotuner,
        "Config": Config,
        "Heuristics": Heuristics,
        "autotune": autotune,
        "heuristics": heuristics,
    }
    errors = {
        "InterpreterError": _InterpreterError,
        "OutOfResources": _OutOfResources,
        "PTXASError": type("PTXASError", (_TritonError,), {}),
        "AutotunerError": type("AutotunerError", (_TritonError,), {}),
        "TritonError": _TritonError,
    }
    compile_errors = {
        "CompilationError": TritonCompileError,
        "CompileTimeAssertionFailure": TritonCompileError,
        "UnsupportedLanguageConstruct": TritonCompileError,
    }
    jitted = {
        "CompiledKernel": CompiledKernel,
        "JITCallable": JITCallable,
        "JITFunction": JITFunction,
        "KernelInterface": KernelInterface,
        "KernelParam": KernelParam,
        "MockTensor": _MockTensor,
        "TensorWrapper": TensorWrapper,
        "constexpr_function": constexpr_function,
        "jit": jit,
        "reinterpret": reinterpret,
    }
    module(
        _NAME,
        {
            "__version__": VERSION,
            **{n: v for n, v in jitted.items() if n not in ("CompiledKernel", "JITCallable", "KernelParam")},
            **{n: v for n, v in tuned.items() if n not in ("Autotuner", "Heuristics")},
            **{n: errors[n] for n in ("InterpreterError", "OutOfResources", "TritonError")},
            "CompilationError": TritonCompileError,
            "cdiv": ConstexprFunction(cdiv),
            "next_power_of_2": ConstexprFunction(next_power_of_2),
            "set_allocator": _set_allocator,
        },
    )
    module("triton.errors", {"TritonError": _TritonError})
    module("triton.runtime", {**jitted, **tuned, **errors, "driver": driver})
    module(
        "triton.runtime.jit",
        {
            **jitted,
            "get_cuda_stream": lambda device=0: 0,
            "get_device_key": lambda: "cuda:0",
            "type_canonicalisation_dict": CANONICAL_TYPES,
        },
    )
    module("triton.runtime._allocation", {"NullAllocator": _NullAllocator, "set_allocator": _set_allocator})
    module("triton._utils", {"type_canonicalisation_dict": CANONICAL_TYPES})
    module("triton.knobs", knobs())
    module("triton.runtime.autotuner", {**tuned, **errors, "driver": driver})
    module("triton.runtime.errors", errors)
    module("triton.runtime.driver", {"driver": driver, "active": driver.active})
    made["triton.runtime"].__dict__["driver"] = driver  # the package's name for it is the driver itself
    module("triton.compiler", {"CompiledKernel": CompiledKernel, **compile_errors})
    module("triton.compiler.compiler", {"CompiledKernel": CompiledKernel})
    module("triton.compiler.errors", compile_errors)
    module("triton.backends", {"backends": {}})
    module("triton.backends.compiler", {"GPUTarget": GPUTarget})
    module("triton.testing", {name: getattr(testing, name) for name in testing.__all__})
    module("triton.profiler", PROFILER)
    module("triton.profiler.viewer", VIEWER)
    module("triton._C")
    module("triton._C.libtriton", {"nvidia": SimpleNamespace(cublas=SimpleNamespace(CublasLt=_Blas))})
    module("triton.tools")
    module("triton.tools.tensor_descriptor", {"TensorDescriptor": TensorDescriptor})
    module("triton.tools.mxfp", {"MXFP4Tensor": MXFP4Tensor, "MXScaleTensor": MXScaleTensor})
    _language_modules(module)
    module("triton._internal_testing", internal_testing(made["triton.language"], made["triton.knobs"], driver))
    return made


def _language_modules(module: Any) -> None:
    """``triton.language`` and what lies in it; the same functions under all the names that they go by."""
    names = {**language.NAMES, "constexpr": constexpr, "constexpr_type": constexpr}
    refused = language.REFUSED
    libdevice = dict(language.LIBDEVICE)
    module("triton.language", names, refused)
    module("triton.language.core", {**names, "_unwrap_if_constexpr": bare, "get_int_dtype": int_type}, refused)
    module("triton.language.standard", {**names, "_log2": _log2, "_is_power_of_two": _is_power_of_two}, refused)
    module("triton.language.math", language.MATH)
    module("triton.language.random", language.RANDOM)
    module("triton.language.extra")
    module("triton.language.extra.libdevice", libdevice, language.REFUSED_LIBDEVICE)
    module("triton.language.libdevice", libdevice, language.REFUSED_LIBDEVICE)
    for backend in ("cuda", "hip"):
        module(f"triton.language.extra.{backend}", language.EXTRA, language.REFUSED_EXTRA)
        module(f"triton.language.extra.{backend}.libdevice", libdevice, language.REFUSED_LIBDEVICE)


def _log2(i: Any) -> Constexpr:
    """What kernels that sort take from Triton's own: the logarithm of a power of two."""
    return Constexpr(int(bare(i)).bit_length() - 1)


def _is_power_of_two(i: Any) -> Constexpr:
    """Likewise."""
    n = int(bare(i))
    return Constexpr(n > 0 and n & (n - 1) == 0)


@contextmanager
def standing_in() -> Iterator[ModuleType]:
    """The stand-ins in ``sys.modules``; whatever was there before is back afterwards, however the block ends."""

    def of_triton() -> list[str]:
        return [name for name in sys.modules if name == _NAME or name.startswith(f"{_NAME}.")]

    before = {name: sys.modules.pop(name) for name in of_triton()}
    made = stand_in_modules()
    sys.modules.update(made)
    try:
        yield made[_NAME]
    finally:
        for name in of_triton():
            del sys.modules[name]
        sys.modules.update(before)
