"""``triton.jit``: kernels that a script launches, ``kernel[grid](*args, **meta)``, and functions that kernels call."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType, SimpleNamespace
from typing import Any

import attrs

from ....ir.errors import ArgumentError, KernscopeError, TritonNameError, TritonSessionError, did_you_mean, shown
from ....ir.source.location import Location
from ...recording.current import CURRENT
from ..arguments import TensorArgument
from ..constexpr import Constexpr, bare
from ..rewriting import rewritten, source_of
from ..values.types import PointerType, type_of_numpy
from .session_state import LaunchRequest, SessionState, current_session
from .tensors import is_dense, launch_argument, tensor_argument

__all__ = [
    "CompiledKernel",
    "JITCallable",
    "JITFunction",
    "KernelInterface",
    "KernelParam",
    "cdiv",
    "constexpr_function",
    "jit",
    "next_power_of_2",
]

#: What a launch may say that is no parameter of its kernel: options of Triton's compiler, for one backend or another.
#: They do not change what a kernel computes; ``num_stages`` is taken up.
_OPTIONS = frozenset(
    [
        "allow_fp8e4b15",
        "allow_fp8e4b8",
        "allow_fp8e4nv",
        "arch",
        "backend_name",
        "cluster_dims",
        "debug",
        "default_dot_input_precision",
        "deprecated_fp8_dot_operand_dtypes",
        "device",
        "device_type",
        "enable_auto_multi_buffer",
        "enable_fast_math",
        "enable_fp_fusion",
        "enable_reflect_ftz",
        "enable_warp_specialization",
        "extern_libs",
        "generate_native_code",
        "instrumentation_mode",
        "ir_override",
        "isCloseUnrollControl",
        "isSimtVf",
        "kpack",
        "launch_cooperative_cluster",
        "launch_cooperative_grid",
        "launch_pdl",
        "loop_scheduling",
        "matrix_instr_nonkdim",
        "max_num_imprecise_acc_default",
        "maxnreg",
        "multibuffer",
        "noinline",
        "num_buffers_warp_spec",
        "num_consumer_groups",
        "num_cpu_threads",
        "num_ctas",
        "num_reg_dealloc",
        "num_stages",
        "num_warps",
        "opt_level",
        "ptx_options",
        "ptx_version",
        "reg_dec_producer",
        "reg_inc_consumer",
        "sanitize_overflow",
        "schedule_hint",
        "stream",
        "supported_fp8_dtypes",
        "supported_sf8_dtypes",
        "unit_flag",
        "vec_lib",
        "warp_size",
        "waves_per_eu",
    ]
)


class KernelParam:
    """A parameter of a kernel, as libraries on top of Triton look at it."""

    def __init__(self, number: int, parameter: inspect.Parameter, do_not_specialize: bool) -> None:
        self.num = number
        self._param = parameter
        self.do_not_specialize = do_not_specialize
        self.do_not_specialize_on_alignment = False

    @property
    def name(self) -> str:
        """The parameter's name."""
        return self._param.name

    @property
    def annotation(self) -> str:
        """The annotation's text."""
        annotation = self._param.annotation
        if annotation is inspect.Parameter.empty:
            return ""
        return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))

    @property
    def is_constexpr(self) -> bool:
        """Whether it is annotated as ``tl.constexpr``."""
        return "constexpr" in self.annotation

    @property
    def is_const(self) -> bool:
        """Whether it is annotated as ``tl.const``: a pointer that nothing is written through."""
        annotation = self._param.annotation
        return annotation is PointerType or (isinstance(annotation, str) and annotation.split(".")[-1] == "const")

    @property
    def default(self) -> Any:
        """The default, or ``inspect._empty``."""
        return self._param.default

    @property
    def has_default(self) -> bool:
        """Whether there is one."""
        return self.default is not inspect.Parameter.empty


class KernelInterface:
    """What can be launched: ``kernel[grid](...)`` calls ``run``."""

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launch, or for ``warmup`` compile only."""
        raise NotImplementedError

    def warmup(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """What a launch would run, without running it."""
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)


class JITCallable:
    """A function in Triton's language: its source, and the Python function that runs it for all programs."""

    def __init__(self, fn: Any) -> None:
        while not isinstance(fn, FunctionType):
            inner = getattr(fn, "fn", None) or getattr(fn, "__wrapped__", None)
            if inner is None:
                raise ArgumentError(f"triton.jit of {shown(fn)}", help="decorate a function that is defined with `def`")
            fn = inner
        self.fn: FunctionType = fn
        functools.update_wrapper(self, fn)
        self.signature = inspect.signature(fn)
        self._source: str | None = None
        self._run: Callable[..., Any] | None = None

    @property
    def location(self) -> Location:
        """Where it is defined."""
        code = self.fn.__code__
        return Location(code.co_filename, code.co_firstlineno, code.co_name)

    @property
    def __globals__(self) -> dict[str, Any]:
        """The names of its module, as of a function."""
        return self.fn.__globals__

    @property
    def src(self) -> str:
        """Its text, from ``def`` on."""
        return source_of(self.fn) if self._source is None else self._source

    @property
    def raw_src(self) -> list[str]:
        """Its text, by lines."""
        return self.src.splitlines(keepends=True)

    def _unsafe_update_src(self, source: str) -> None:
        """Let another text take its place, as Triton's own tests do."""
        self._source, self._run = source, None

    @property
    def function(self) -> Callable[..., Any]:
        """The function that runs it for all programs; made when it is first needed."""
        if self._run is None:
            self._run = rewritten(self.fn, self._source)
        return self._run

    @property
    def cache_key(self) -> str:
        """What tells its text from that of any other."""
        return hashlib.sha256(f"{self.fn.__qualname__}\n{self.src}".encode()).hexdigest()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if CURRENT.get() is None:
            raise TritonSessionError(
                f"kernel {self.fn.__name__} was called without a grid",
                help=f"launch it, {self.fn.__name__}[(programs,)](...); only kernels call it directly",
            )
        return self.function(*map(bare, args), **{name: bare(value) for name, value in kwargs.items()})


class JITFunction(JITCallable, KernelInterface):
    """What ``@triton.jit`` makes of a function."""

    def __init__(
        self,
        fn: Any,
        version: Any = None,
        do_not_specialize: Any = None,
        do_not_specialize_on_alignment: Any = None,
        debug: Any = None,
        noinline: Any = None,
        repr: Any = None,
        launch_metadata: Any = None,
    ) -> None:
        super().__init__(fn)
        self.version, self.debug, self.noinline, self.launch_metadata = version, debug, noinline, launch_metadata
        self.repr: Callable[[Any], str] | None = repr
        self.do_not_specialize = list(do_not_specialize or [])
        self.params = [
            KernelParam(n, p, n in self.do_not_specialize or p.name in self.do_not_specialize)
            for n, p in enumerate(self.signature.parameters.values())
        ]
        self.arg_names = [p.name for p in self.params]
        self.constexprs = [p.num for p in self.params if p.is_constexpr]
        self.pre_run_hooks: list[Callable[..., Any]] = []

    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None:
        """Call something with the arguments before every launch."""
        self.pre_run_hooks.append(hook)

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> CompiledKernel:
        """Launch the kernel with a grid, which is a number of programs, up to three of them, or a function of its
        arguments. Raises ``ArgumentError`` for arguments that do not fit."""
        session = current_session()
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        given = self._bound(args, kwargs)
        options = {name: bare(value) for name, value in kwargs.items() if name not in self.signature.parameters}
        compiled = CompiledKernel(self, given, options)
        if warmup:
            return compiled
        launched_grid = self._grid(grid, given)
        if 0 in launched_grid:
            return compiled
        arguments = self._arguments(given)
        addresses = _addressed(session)
        request = LaunchRequest(self, self.function, arguments, launched_grid, options, session.config, addresses)
        compiled.launch = session.launch(request)
        return compiled

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        parameters = self.signature.parameters
        unknown = [name for name in kwargs if name not in parameters and name not in _OPTIONS]
        if unknown:
            raise ArgumentError(
                f"kernel {self.fn.__name__} has no parameter {unknown[0]!r}, and no compiler option is called so",
                help=did_you_mean(unknown[0], [*parameters, *_OPTIONS], listed=f"it takes: {', '.join(parameters)}"),
            )
        try:
            bound = self.signature.bind(*args, **{name: v for name, v in kwargs.items() if name in parameters})
        except TypeError as error:
            raise ArgumentError(f"kernel {self.fn.__name__}: {error}", help=f"it takes: {', '.join(parameters)}").at(
                self.location, "kernel defined here"
            ) from None
        bound.apply_defaults()
        return {name: bare(value) for name, value in bound.arguments.items()}

    def _grid(self, grid: Any, given: Mapping[str, Any]) -> tuple[int, int, int]:
        if callable(grid):
            grid = grid(dict(given))
        sizes = [bare(size) for size in (grid if isinstance(grid, tuple | list) else (grid,))]
        try:
            whole = [int(size.__index__()) for size in sizes]
        except (AttributeError, TypeError):
            whole = []
        if not 1 <= len(whole) <= 3 or min(whole) < 0:
            raise ArgumentError(
                f"kernel {self.fn.__name__} with a grid of {shown(grid)}",
                help="a grid is one to three numbers of programs, or a function of the arguments that returns them",
            )
        x, y, z = [*whole, 1, 1][:3]
        return x, y, z

    def _arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as a launch takes them: what is known when a kernel is compiled stays a ``Constexpr``."""
        arguments = {}
        for parameter in self.params:
            value = given[parameter.name]
            if parameter.is_constexpr:
                arguments[parameter.name] = Constexpr(value)
                continue
            try:
                argument = launch_argument(value, specialise=not parameter.do_not_specialize)
                is_const = parameter.is_const and isinstance(argument, TensorArgument)
                arguments[parameter.name] = attrs.evolve(argument, is_const=True) if is_const else argument
            except KernscopeError as error:
                error.message = f"argument {parameter.name} of kernel {self.fn.__name__}: {error.message}"
                raise
        return arguments

    def __repr__(self) -> str:
        return f"JITFunction({self.fn.__module__}:{self.fn.__qualname__})"


def _addressed(session: SessionState) -> dict[int, TensorArgument]:
    """The tensors whose address the script has asked for, of those that there still are and that kernels can take."""
    living = ((address, reference()) for address, reference in session.addresses.items())
    return {address: tensor_argument(tensor) for address, tensor in living if tensor is not None and is_dense(tensor)}


class CompiledKernel:
    """What a launch and ``warmup`` return, in the place of machine code. Scripts size their grids by it: a program
    keeps the machine's whole scratch, so that one runs on a processing element at a time."""

    n_regs = 32
    n_spills = 0

    def __init__(self, kernel: JITFunction, given: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        device = current_session().device
        self.kernel, self._given, self._options = kernel, dict(given), dict(options)
        self.name = kernel.fn.__name__ if kernel.repr is None else kernel.repr(_specialization(kernel, given))
        self.metadata = SimpleNamespace(
            name=self.name,
            shared=device.scratch_bytes,
            num_warps=int(options.get("num_warps") or 4),
            num_stages=int(options.get("num_stages") or 3),
            num_ctas=int(options.get("num_ctas") or 1),
        )
        self.launch: Any = None
        self.n_max_threads = 1024

    @property
    def shared(self) -> int:
        """Bytes of scratch."""
        return int(self.metadata.shared)

    def _init_handles(self) -> None:
        """There are none."""

    def result(self) -> CompiledKernel:
        """Itself: nothing is compiled in the background."""
        return self

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        def launch(*args: Any, stream: Any = None) -> CompiledKernel:
            kernel, fixed = self.kernel, self._given
            names = kernel.arg_names
            if len(args) != len(names):  # those that are not known when a kernel is compiled, as older versions take
                names = [p.name for p in kernel.params if not p.is_constexpr]
            given = {**fixed, **dict(zip(names, args, strict=True))}
            return kernel.run(grid=grid, warmup=False, **given, **self._options)

        return launch

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Triton's own launcher of machine code."""
        raise TritonNameError(
            "CompiledKernel.run: there is no machine code", help="launch the kernel: kernel[grid](...)"
        )

    def __getattr__(self, name: str) -> Any:
        raise TritonNameError(
            f"a compiled kernel has no {name!r} in kernscope: nothing is compiled to machine code",
            help="kernscope answers: metadata, n_regs, n_spills, shared, name",
        )


def _specialization(kernel: JITFunction, given: Mapping[str, Any]) -> SimpleNamespace:
    """What a kernel's own ``repr`` is told: the types of its arguments, and those that are known."""
    signature, constants = {}, {}
    for parameter in kernel.params:
        value = given[parameter.name]
        is_known = parameter.is_constexpr or (value == 1 and type(value) is int and not parameter.do_not_specialize)
        signature[parameter.name] = "constexpr" if is_known else _type_of_argument(value)
        if is_known:
            constants[parameter.name] = value
    return SimpleNamespace(name=kernel.fn.__name__, signature=signature, constants=constants)


def _type_of_argument(value: Any) -> str:
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        return "i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"
    if isinstance(value, float):
        return "fp32"
    return f"*{type_of_numpy(tensor_argument(value).memory.dtype)}" if hasattr(value, "dtype") else "constexpr"


class ConstexprFunction:
    """``triton.constexpr_function``: Python that is run while a kernel is compiled."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        functools.update_wrapper(self, fn)

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*map(bare, args), **{k: bare(v) for k, v in kwargs.items() if not k.startswith("_semantic")})


def constexpr_function(fn: Callable[..., Any]) -> ConstexprFunction:
    """A function of compile-time values, for host code and kernels."""
    return ConstexprFunction(fn)


def jit(fn: Any = None, **options: Any) -> Any:
    """``@triton.jit``, with and without options."""
    if fn is None:
        return lambda function: JITFunction(function, **options)
    return JITFunction(fn, **options)


def cdiv(x: Any, y: Any) -> Any:
    """``x / y``, rounded up."""
    x, y = bare(x), bare(y)
    return (x + y - 1) // y


def next_power_of_2(n: Any) -> int:
    """The smallest power of two that is not less than ``n``."""
    n = int(bare(n))
    return 0 if n <= 0 else 1 << (n - 1).bit_length()
