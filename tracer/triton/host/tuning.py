"""``triton.autotune``, ``triton.heuristics`` and ``triton.Config``: which configuration of a kernel a launch runs.

There is nothing to time: a launch runs the first configuration, of those that a kernel's own pruning leaves, that the
language accepts and that fits into scratch. A session that is asked for all of them tries each on the arguments as they
are, and then runs that first one.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ....ir.errors import ArgumentError, TritonCompileError
from .jit import JITFunction, KernelInterface
from .session_state import SessionState, Trial, current_session
from .tensors import TensorDescriptor, tensor_argument

__all__ = ["Autotuner", "Config", "Heuristics", "autotune", "heuristics"]


class Config:
    """One configuration: values of a kernel's parameters, and options of a launch."""

    def __init__(
        self,
        kwargs: Mapping[str, Any],
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        num_cpu_threads: int = 0,
        maxnreg: int | None = None,
        pre_hook: Callable[..., Any] | None = None,
        ir_override: str | None = None,
        **more: Any,
    ) -> None:
        self.kwargs = dict(kwargs)
        self.num_warps, self.num_stages, self.num_ctas = num_warps, num_stages, num_ctas
        self.num_cpu_threads, self.maxnreg = num_cpu_threads, maxnreg
        self.pre_hook, self.ir_override = pre_hook, ir_override
        self._more = more  # a backend's own

    def all_kwargs(self) -> dict[str, Any]:
        """What a launch is given of it."""
        options = {
            "num_warps": self.num_warps,
            "num_ctas": self.num_ctas,
            "num_stages": self.num_stages,
            "num_cpu_threads": self.num_cpu_threads,
            "maxnreg": self.maxnreg,
            "ir_override": self.ir_override,
            **self._more,
        }
        return {**self.kwargs, **{name: value for name, value in options.items() if value is not None}}

    def __str__(self) -> str:
        texts = [f"{name}: {value}" for name, value in self.kwargs.items()]
        rest = ("num_warps", "num_ctas", "num_stages", "maxnreg")
        return ", ".join([*texts, *(f"{name}: {getattr(self, name)}" for name in rest)])

    def __hash__(self) -> int:
        return hash((*self.all_kwargs().items(), self.pre_hook))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Config):
            return NotImplemented
        return self.all_kwargs() == other.all_kwargs() and self.pre_hook == other.pre_hook


class Autotuner(KernelInterface):
    """A kernel with configurations. Libraries derive from it, and look at what it keeps."""

    def __init__(
        self,
        fn: Any,
        arg_names: Sequence[str],
        configs: Sequence[Config] | None,
        key: Sequence[str],
        reset_to_zero: Sequence[str] | None = None,
        restore_value: Sequence[str] | None = None,
        pre_hook: Callable[..., Any] | None = None,
        post_hook: Callable[..., Any] | None = None,
        prune_configs_by: Mapping[str, Any] | None = None,
        warmup: Any = None,
        rep: Any = None,
        use_cuda_graph: bool = False,
        do_bench: Any = None,
        cache_results: bool = False,
    ) -> None:
        self.fn, self.arg_names, self.keys = fn, list(arg_names), list(key)
        self.configs = list(configs) if configs else [Config({}, num_warps=4, num_stages=3, num_ctas=1)]
        self.cache: dict[Any, Config] = {}
        self.reset_to_zero, self.restore_value = list(reset_to_zero or ()), list(restore_value or ())
        self.pre_hook = pre_hook or (lambda kwargs, reset_only=False: None)
        self.post_hook = post_hook or (lambda kwargs, exception=None: None)
        self.user_defined_pre_hook, self.user_defined_post_hook = pre_hook is not None, post_hook is not None
        pruning = dict(prune_configs_by or {})
        self.perf_model = pruning.get("perf_model")
        self.configs_top_k = pruning.get("top_k", 1.0)
        self.early_config_prune = pruning.get("early_config_prune")
        self.num_warmups, self.num_reps, self.use_cuda_graph = warmup, rep, use_cuda_graph
        self._do_bench, self.cache_results = do_bench, cache_results
        self.base_fn = fn
        while not inspect.isfunction(self.base_fn):
            self.base_fn = self.base_fn.fn
        self.nargs: dict[str, Any] | None = None
        self.best_config: Config = self.configs[0]

    @property
    def __name__(self) -> str:
        name: str = self.base_fn.__name__
        return name

    @__name__.setter
    def __name__(self, name: str) -> None:
        """A library may set it: to the same."""

    @property
    def signature(self) -> inspect.Signature:
        """That of the function."""
        return inspect.signature(self.base_fn)

    @property
    def jit_function(self) -> JITFunction:
        """The kernel itself, below what decorates it."""
        kernel = self.fn
        while not isinstance(kernel, JITFunction):
            kernel = kernel.fn
        return kernel

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launch with the first configuration that the language accepts and that fits into scratch."""
        session = current_session()
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        configs = self.prune_configs(kwargs) if len(self.configs) > 1 else self.configs
        try:
            if session.configs == "all" and len(configs) > 1 and not kwargs.get("warmup"):
                self._try_all(session, configs, args, kwargs)
            return self._run_first(session, configs, args, kwargs)
        finally:
            self.nargs = None

    def _run_first(
        self, session: SessionState, configs: Sequence[Config], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        if len(configs) == 1:
            self.best_config = configs[0]
            return self._run_one(configs[0], args, kwargs)
        refused: TritonCompileError | None = None
        accepted: list[Config] = []
        for config in configs:
            memory = _Snapshot(self.nargs, kwargs)
            try:
                compiled = self._run_one(config, args, kwargs)
            except TritonCompileError as error:
                refused = refused or error
                continue
            launch = getattr(compiled, "launch", None)
            if launch is None or session.fits(launch):
                self.best_config = config
                return compiled
            memory.restore()
            session.discard(launch)
            accepted.append(config)
        if not accepted:
            assert refused is not None, "there is a configuration"
            refused.message = f"no configuration of {self.__name__} is accepted; the first: {refused.message}"
            raise refused
        # None fits: the first one runs all the same, and the linter says by how much it does not.
        self.best_config = accepted[0]
        return self._run_one(accepted[0], args, kwargs)

    def _run_one(self, config: Config, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        options = config.all_kwargs()
        conflicts = sorted(set(kwargs) & set(config.kwargs))
        if conflicts:
            raise ArgumentError(
                f"kernel {self.__name__} is given {conflicts[0]}={kwargs[conflicts[0]]!r}, which its configurations "
                "set, too",
                help="leave it out where the kernel is launched, or out of triton.Config",
            )
        if config.pre_hook is not None:
            config.pre_hook({**(self.nargs or {}), **kwargs, **options})
        session = current_session()
        session.config = config
        try:
            return self.fn.run(*args, **{**options, **kwargs})
        finally:
            session.config = None

    def _try_all(
        self, session: SessionState, configs: Sequence[Config], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        """Launch every configuration on the arguments as they are; they are as before afterwards."""
        number = session.trials[-1].number + 1 if session.trials else 0
        for config in configs:
            memory = _Snapshot(self.nargs, kwargs)
            launch = refused = None
            try:
                with session.trying():
                    launch = getattr(self._run_one(config, args, kwargs), "launch", None)
            except TritonCompileError as error:
                refused = error
            finally:
                memory.restore()
            session.trials.append(Trial(number, self.jit_function, config, launch, refused))

    def _bench(self, *args: Any, config: Config, **kwargs: Any) -> list[float]:
        """What libraries that choose for themselves go by: the time of a launch on the machine, in ms, three times, as
        often as Triton measures it; infinite for what the language refuses or what does not fit. Memory is as before
        afterwards."""
        session = current_session()
        memory = _Snapshot(self.nargs or dict(zip(self.arg_names, args, strict=False)), kwargs)
        try:
            with session.trying():
                launch = getattr(self._run_one(config, args, kwargs), "launch", None)
        except TritonCompileError:
            return [math.inf] * 3
        finally:
            memory.restore()
        fits = launch is not None and session.fits(launch)
        return [session.milliseconds(launch) if fits else math.inf] * 3

    def prune_configs(self, kwargs: Mapping[str, Any]) -> list[Config]:
        """The configurations that the kernel's own pruning leaves, as Triton asks it. Raises ``ArgumentError`` where it
        leaves none."""
        named = self.nargs or {}
        pruned = list(self.configs)
        if self.early_config_prune:
            pruned = list(self.early_config_prune(self.configs, named, **kwargs))
            if not pruned:
                raise ArgumentError(
                    f"early_config_prune of {self.__name__} leaves none of {len(self.configs)} configurations",
                    help="it should return at least one",
                )
        if not self.perf_model:
            return pruned
        count = self.configs_top_k
        if isinstance(count, float) and count <= 1.0:
            count = int(len(self.configs) * count)
        elif not isinstance(count, int):
            raise ArgumentError(f"top_k={count!r}", help="it is a part of 1.0, or a number of configurations")
        if len(pruned) > count:
            cost = [self.perf_model(**named, **kwargs, **config.all_kwargs()) for config in pruned]
            pruned = [pruned[n] for n in sorted(range(len(pruned)), key=cost.__getitem__)[:count]]
        return pruned

    def warmup(self, *args: Any, **kwargs: Any) -> Any:
        """What each configuration would run."""
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        try:
            return [self.fn.warmup(*args, **{**c.all_kwargs(), **kwargs}) for c in self.prune_configs(kwargs)]
        finally:
            self.nargs = None


class _Snapshot:
    """The memory of a launch's tensors as it is now."""

    def __init__(self, *arguments: Mapping[str, Any] | None) -> None:
        self._kept: dict[tuple[int, str], tuple[Any, Any]] = {}
        for value in (v for mapping in arguments for v in (mapping or {}).values()):
            tensor = value.base if isinstance(value, TensorDescriptor) else value
            if isinstance(tensor, np.ndarray) or hasattr(tensor, "data_ptr"):
                memory = tensor_argument(tensor).memory
                self._kept.setdefault((memory.__array_interface__["data"][0], ""), (memory, memory.copy()))

    def restore(self) -> None:
        """Write it back."""
        for memory, before in self._kept.values():
            memory[...] = before


def autotune(configs: Sequence[Config], key: Sequence[str], **options: Any) -> Callable[[Any], Autotuner]:
    """``@triton.autotune``."""
    return lambda fn: Autotuner(fn, fn.arg_names, configs, key, **options)


class Heuristics(KernelInterface):
    """A kernel with parameters that are computed from the others."""

    def __init__(self, fn: Any, arg_names: Sequence[str], values: Mapping[str, Callable[..., Any]]) -> None:
        self.fn, self.arg_names, self.values = fn, list(arg_names), values

    @property
    def __name__(self) -> str:
        name: str = self.fn.__name__
        return name

    @property
    def signature(self) -> Any:
        """That of the function."""
        return self.fn.signature

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launch with them."""
        for name, compute in self.values.items():
            kwargs[name] = compute({**dict(zip(self.arg_names, args, strict=False)), **kwargs})
        return self.fn.run(*args, **kwargs)


def heuristics(values: Mapping[str, Callable[..., Any]]) -> Callable[[Any], Heuristics]:
    """``@triton.heuristics``."""
    return lambda fn: Heuristics(fn, fn.arg_names, values)
