"""Tracing: call the kernel once per rank, record what it does.

:func:`recording` is for front ends: a trace in which tensors are declared and ranks are recorded, however they come
about. :func:`record_kernel` is the front end of ``kernscope.tl``: it binds arguments, and calls a kernel.
"""

from __future__ import annotations

import functools
import gc
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs
import numpy as np

from ..ir import dtypes
from ..ir.errors import ArgumentError, KernscopeError, OptionError, did_you_mean, shown
from ..ir.graph import Graph
from ..ir.grid import Grid, check_grid, dealt
from ..ir.layout import Layout, check_shape
from ..ir.source.frames import own_folders
from ..ir.target import Target
from .kernel import HbmSpec, Kernel
from .observing.observer import Observer
from .recording.current import CURRENT
from .recording.recorder import DEFAULT_MAX_NODES, Recorder
from .recording.sites import SiteTable
from .values.hbm import HbmTensor

__all__ = ["Recording", "check_ranks", "record_kernel", "recording"]

#: Nodes and ranks are numbered by columns of int32.
_MOST_NODES = 2**31 - 1


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """The boundary: every call stack of a graph ends at the frame that this function calls."""
    function(*args, **kwargs)


@attrs.frozen(eq=False)
class Recording:
    """A trace that is running; made by :func:`recording`. ``recorder`` takes what the ranks do."""

    recorder: Recorder
    kernel: str
    machine: str
    machine_toml: str = ""

    def tensor(self, name: str, layout: Layout) -> HbmTensor:
        """Declare a tensor in global memory. All of them come before the first rank."""
        return self.recorder.add_tensor(name, layout)

    def ranks(self) -> Iterator[int]:
        """The ranks, one after the other: what is recorded while one is given out belongs to it."""
        for rank in range(self.recorder.ranks):
            self.recorder.begin_rank()
            yield rank
            self.recorder.end_rank()

    def programs(self, rank: int) -> Iterator[int]:
        """The numbers of a rank's programs, one after the other, each in fresh scratch; without a grid the rank is the
        one program that it runs."""
        if not self.recorder.grid:
            yield rank
            return
        for number in dealt(self.recorder.grid, rank, self.recorder.ranks):
            scope = self.recorder.begin_program(number)
            yield number
            self.recorder.end_program(scope)

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
        """Call a kernel for the present rank: call stacks end at the frame of this function."""
        _call(function, args, kwargs)

    def finish(self, defaults: Mapping[str, np.ndarray[Any, Any]]) -> Graph:
        """The graph of all that was recorded, once the ranks are done; ``defaults`` are the arrays behind tensors."""
        return self.recorder.finish(
            kernel=self.kernel, machine=self.machine, machine_toml=self.machine_toml, defaults=defaults
        )


@contextmanager
def recording(
    target: Target,
    machine: str,
    ranks: int = 1,
    *,
    kernel: str,
    machine_toml: str = "",
    own: Iterable[str | os.PathLike[str]] = (),
    **options: Any,
) -> Iterator[Recording]:
    """A trace, for the ``with`` block that records it; ask it for its graph afterwards.

    Within the block its recorder is the current one: ``tl`` records there, and the trace around it, if there is one, is
    suspended. However the block ends, nothing of the trace stays behind. ``own`` are folders of the front end, whose
    frames are never the author's; ``options`` are those of :class:`Recorder`.

    Raises ``ChannelError`` for ranks that do not fit the topology, and ``ScopeError`` where a rank leaves a scope open.
    """
    target.grid(ranks)
    options.setdefault("boundary", _call.__code__)
    recorder = Recorder(target, ranks=ranks, own=own_folders(own), **options)
    outer = CURRENT.get()
    if outer is not None:
        outer.suspend()
    token = CURRENT.set(recorder)
    # Millions of small tuples and handles are made and none of them are cyclic garbage: do not let the collector walk
    # them again and again.
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield Recording(recorder, kernel, machine, machine_toml)
    finally:
        CURRENT.reset(token)
        recorder.suspend()
        if outer is not None:
            outer.resume()
        if collecting:
            gc.enable()


def record_kernel(
    kernel: Kernel | Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    target: Target,
    machine: str,
    machine_toml: str = "",
    ranks: int = 1,
    grid: Grid = (),
    strict: bool = False,
    on_overflow: str = "raise",
    on_bounds: str = "raise",
    max_nodes: int = DEFAULT_MAX_NODES,
    observe: bool = False,
) -> Graph:
    """Trace a kernel: one call per rank into one graph; with a ``grid``, one call per program.

    numpy arrays and :func:`kernscope.hbm` descriptions among the arguments become HBM tensors, named by their
    parameters; everything else is passed on unchanged, and so are arrays in keyword-only parameters (host data).
    Whatever the kernel raises passes through; nothing of the trace stays behind.

    ``on_overflow`` and ``on_bounds``: ``"record"`` goes on past such a fault, and notes it, where it would end the
    trace. One that the kernel itself handles (it tries a size, and takes a smaller one) is raised all the same: the
    graph is that of the path which a trace without other faults takes.

    ``observe``: the graph says which branches of the kernel were taken (``graph.branches``).

    Raises ``ArgumentError`` for arguments that do not fit, ``ChannelError`` for ranks that do not fit the topology, and
    what ``tl`` raises.
    """
    _check_options(ranks, on_overflow, max_nodes)
    while isinstance(kernel, functools.partial):
        # What it holds are arguments like all others: arrays among them become HBM tensors, too.
        args, kwargs, kernel = (*kernel.args, *args), {**kernel.keywords, **kwargs}, kernel.func
    if not callable(kernel):
        raise ArgumentError(
            f"cannot trace {shown(kernel)}", help="pass a function, a @ks.kernel or kernel.launch('name')"
        )
    made = kernel if isinstance(kernel, Kernel) else Kernel(kernel)
    new = functools.partial(
        recording,
        target,
        machine,
        int(ranks),
        kernel=made.name,
        machine_toml=machine_toml,
        grid=check_grid(None if grid == () else grid),
        strict=strict,
        max_nodes=max_nodes,
    )
    raised: list[tuple[int, KernscopeError]] = []
    sites: SiteTable | None = None
    observer = Observer() if observe else None
    try:
        with new() as trace:
            raised, sites = trace.recorder.raised, trace.recorder.sites
            defaults = _run(made, made.bind(args, kwargs), trace, observer)
    except Exception as error:
        ended = [stack for stack, fault in raised if fault in _chain(error)]
        if not ended or "record" not in (on_overflow, on_bounds):
            raise
        handled = frozenset(stack for stack, _ in raised) - {*ended}
        with new(on_overflow=on_overflow, on_bounds=on_bounds, sites=sites, handled=handled) as trace:
            if observer is not None:
                observer.begin_again()
            defaults = _run(made, made.bind(args, kwargs), trace, observer)
    graph = trace.finish(defaults)
    if observer is not None:
        graph = attrs.evolve(graph, branches=observer.branches())
    _refuse_stored_aliases(graph)
    return graph


def _run(
    made: Kernel, bound: inspect.BoundArguments, trace: Recording, observer: Observer | None
) -> dict[str, np.ndarray[Any, Any]]:
    """Call the kernel once per rank; the arrays among its arguments by name."""
    defaults: dict[str, np.ndarray[Any, Any]] = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is kind.VAR_POSITIONAL:
            bound.arguments[name] = tuple(_argument(trace, f"{name}[{i}]", v, defaults) for i, v in enumerate(value))
        elif kind is kind.VAR_KEYWORD:
            bound.arguments[name] = {key: _argument(trace, key, v, defaults) for key, v in value.items()}
        elif kind is not kind.KEYWORD_ONLY or not isinstance(value, np.ndarray):  # those are what the host knows
            bound.arguments[name] = _argument(trace, name, value, defaults)
    for rank in trace.ranks():
        for number in trace.programs(rank):
            function = made.function
            if observer is not None:
                observer.program, function = number, observer.of(function)
            trace.call(function, *bound.args, **bound.kwargs)
    return defaults


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that it was raised from or while handling."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def check_ranks(ranks: object, max_nodes: int = DEFAULT_MAX_NODES) -> None:
    """Raise ``ArgumentError`` for what is no number of ranks, or more of them than a trace may have nodes: the kernel
    is called once for each, and one that records nothing would never meet the limit of nodes."""
    if isinstance(ranks, bool) or not isinstance(ranks, int | np.integer) or ranks < 1:
        raise ArgumentError(f"ranks={shown(ranks)}", help="ranks is a positive integer")
    if ranks > max_nodes:
        raise ArgumentError(
            f"ranks={shown(ranks)}: more than the {max_nodes:,} nodes that a trace may have",
            help=f"trace at most {max_nodes:,} ranks, so that each can record a node; a few show what all do",
        )


def _check_options(ranks: int, on_overflow: str, max_nodes: int) -> None:
    if not isinstance(on_overflow, str) or on_overflow not in ("raise", "record"):
        nearest = did_you_mean(str(on_overflow), ("raise", "record"), what="it can be")
        raise OptionError(f"on_overflow={shown(on_overflow)}", help=nearest)
    if isinstance(max_nodes, bool) or not isinstance(max_nodes, int) or max_nodes < 1:
        raise OptionError(f"max_nodes={max_nodes!r}", help="the node limit is a positive integer")
    if max_nodes > _MOST_NODES:
        raise OptionError(f"max_nodes={max_nodes!r}", help=f"a graph numbers its nodes and ranks up to {_MOST_NODES:,}")
    check_ranks(ranks, max_nodes)


def _argument(trace: Recording, name: str, value: Any, defaults: dict[str, np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, HbmSpec):
        return trace.tensor(name, value.layout)
    if isinstance(value, np.ndarray):
        try:
            layout = Layout.dense(check_shape(value.shape), dtypes.of_numpy(value.dtype))
        except KernscopeError as error:
            error.message = f"argument {name}: {error.message}"
            raise
        defaults[name] = value
        return trace.tensor(name, layout)
    if isinstance(value, HbmTensor):
        raise ArgumentError(
            f"argument {name} is an HBM tensor of a trace", help="inside a kernel, call the other kernel directly"
        )
    return value


def _refuse_stored_aliases(graph: Graph) -> None:
    """Two parameters may share one array only while it is read: their storages are told apart by nothing else."""
    arrays = list(graph.defaults.items())
    shared = [(a, b) for i, (a, x) in enumerate(arrays) for b, y in arrays[i + 1 :] if _share_memory(x, y)]
    if not shared:
        return
    stored = set(np.unique(graph.accesses.storage[graph.accesses.mode == 1]).tolist())
    for a, b in shared:
        if graph.tensors[a] in stored or graph.tensors[b] in stored:
            raise ArgumentError(
                f"arguments {a} and {b} share memory and the kernel stores to one of them",
                help="pass a copy: array.copy()",
            )


def _share_memory(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays have an element in common: exactly, for the columns or halves of one array; where the strides
    make that too hard to tell, whether their extents overlap."""
    try:
        return bool(np.shares_memory(a, b, max_work=1_000_000))  # type: ignore[arg-type]  # a stub for 0 and -1
    except np.exceptions.TooHardError:
        return bool(np.may_share_memory(a, b))
