"""The public functions: each puts the stages together, kernel -> tracer -> ir -> scheduler -> backends."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from ..analysis.analysis import Analysis
from ..backends.execution.comparison import Comparison, compare_with_reference
from ..backends.execution.execute import execute
from ..checker.check import check
from ..ir.arrays.frozen_map import FrozenMap
from ..ir.branches import Branches
from ..ir.columns import expect_graph
from ..ir.errors import InputError, KernelRaisedError, OptionError, TimeLimitError, raised, shown
from ..ir.graph import Graph
from ..ir.source.frames import author_place
from ..ir.unstored import Unstored
from ..linter import LintReport, lint_graph
from ..machine.description import DEFAULT_MACHINE, Machine, load_machine
from ..memory.buffering import rebuffer
from ..memory.liveness import liveness
from ..scheduler.policy.optimal import DEFAULT_TIME_LIMIT_S, SolverLimit
from ..scheduler.policy.registry import LADDER
from ..scheduler.result.ladder import Ladder
from ..scheduler.result.ladder import compare as compare_policies
from ..scheduler.result.schedule import Schedule
from ..scheduler.result.schedule import schedule as schedule_graph
from ..tracer.kernel import Kernel, Launch
from ..tracer.recording.recorder import DEFAULT_MAX_NODES
from ..tracer.retrace import Retraced
from ..tracer.retrace import trace_twice as retracing
from ..tracer.trace import record_kernel
from .invocations import invocation_of

__all__ = ["branches", "check", "compare", "lint", "liveness", "rebuffer", "run", "schedule", "trace"]

Array = np.ndarray[Any, np.dtype[Any]]


def trace(
    kernel: Kernel | Launch | Callable[..., Any],
    /,
    *args: Any,
    ranks: int | None = None,
    grid: int | Sequence[int] | None = None,
    machine: Any = None,
    strict: bool = False,
    on_overflow: str = "raise",
    max_nodes: int = DEFAULT_MAX_NODES,
    **kwargs: Any,
) -> Graph:
    """Run a kernel once per rank in trace mode and return its graph.

    ``kernel`` is a function or a ``@ks.kernel`` with its arguments, or a launch (whose arguments keywords override). A
    kernel that has launches and is given no arguments stands for the first of them.

    Arrays become HBM tensors, but those of keyword-only parameters: these, lists and all else are Python values to the
    kernel, known while tracing.

    ``grid``: one call per program of a launch grid, ``(4, 8)``, dealt to the ranks in order; None: the launch's, else
    one program a rank.

    ``ranks`` and ``machine`` (a preset's name, a TOML file's path or a ``Machine``): None means the launch's, else 1
    and the default machine. ``strict`` raises ``UseAfterScopeError`` at the first use of a handle after its scope.
    ``on_overflow="record"`` goes on past the scratch budget.

    Raises what ``tl`` raises at the kernel's lines, ``ArgumentError`` for arguments that do not fit, ``NodeLimitError``
    past ``max_nodes`` nodes, and whatever the kernel itself raises.
    """
    return _trace(
        kernel,
        args,
        kwargs,
        ranks=ranks,
        grid=grid,
        machine=machine,
        strict=strict,
        on_overflow=on_overflow,
        max_nodes=max_nodes,
    )


def branches(
    kernel: Kernel | Launch | Callable[..., Any],
    /,
    *args: Any,
    ranks: int | None = None,
    grid: int | Sequence[int] | None = None,
    machine: Any = None,
    **kwargs: Any,
) -> Branches:
    """Which way a kernel went where it asked Python: its conditions, loops, ``match`` and ``except``, and those of its
    author's functions that it calls. A trace freezes them: its graph holds no other way.

    Arguments, and what is raised, are those of :func:`trace`; overflow and accesses out of bounds are passed over. Two
    launches are compared by ``ks.branches(one).differences(ks.branches(other))``.
    """
    faults = {"on_overflow": "record", "on_bounds": "record"}
    graph = _trace(kernel, args, kwargs, ranks=ranks, grid=grid, machine=machine, observe=True, **faults)
    assert graph.branches is not None, "the trace was watched"
    return graph.branches


def trace_for(
    launch: Launch,
    machine: Machine,
    *,
    record: bool = False,
    observe: bool = False,
    max_nodes: int = DEFAULT_MAX_NODES,
) -> Graph:
    """Trace a launch for a machine; ``record`` notes overflow and accesses out of bounds rather than raising;
    ``observe``: the graph has the branches that were taken."""
    faults = "record" if record else "raise"
    return _trace(
        launch,
        (),
        {},
        machine=machine,
        on_overflow=faults,
        on_bounds=faults,
        observe=observe,
        max_nodes=max_nodes,
    )


def _trace(
    kernel: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    ranks: int | None = None,
    grid: Any = None,
    machine: Any = None,
    **options: Any,
) -> Graph:
    kernel = _with_default_launch(kernel, args, kwargs)
    if isinstance(kernel, Launch):
        launch = kernel
        # Positional arguments stand for all of the launch's; keywords override single ones.
        kwargs = kwargs if args else {**launch.arguments, **kwargs}
        kernel = launch.kernel
        ranks = launch.ranks if ranks is None else ranks
        grid = launch.grid if grid is None else grid
        machine = launch.machine if machine is None else machine
    described = load_machine(DEFAULT_MACHINE if machine is None else machine)
    return record_kernel(
        kernel,
        args,
        kwargs,
        target=described.target,
        machine=described.name,
        machine_toml=described.to_toml(),
        ranks=1 if ranks is None else ranks,
        grid=() if grid is None else grid,
        **options,
    )


def _with_default_launch(subject: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A kernel without any arguments stands for its default launch, if it has one."""
    bare = isinstance(subject, Kernel) and bool(subject.launches) and not args and not kwargs
    return subject.launch() if bare else subject


def schedule(
    graph: Graph,
    policy: str = "list",
    machine: Any = None,
    effort: str = "normal",
    *,
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    seed: int = 0,
) -> Schedule:
    """Schedule a graph under a policy: ``"blocking"``, ``"lazy"``, ``"queued"``, ``"list"`` or ``"optimal"``.

    ``machine``: a name, a TOML file's path or a ``Machine``; None means the one the graph was traced for. ``effort``
    (``"fast"``, ``"normal"``, ``"high"``) bounds the search of ``list``.

    ``optimal`` searches on from the schedule of ``list``, exactly, for ``time_limit_s`` seconds at most and with the
    ``seed`` for its choices: ``schedule.proved_optimal`` says whether it came to an end, ``schedule.bound_ps`` what it
    proved in any case. It needs the extra ``optimal`` (else ``MissingExtraError``) and refuses more than 2,000 nodes on
    engines (``PolicyError``).

    Raises ``DeadlockError`` where ranks wait for each other in a cycle, ``TargetMismatchError`` for a machine of
    another target, ``PolicyError`` for unknown names, ``ArgumentError`` for what is no graph.
    """
    return schedule_graph(graph, machine, policy, effort, SolverLimit(time_limit_s, seed))


def compare(
    graph: Graph,
    policies: Iterable[str] = LADDER,
    machine: Any = None,
    effort: str = "normal",
    *,
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    seed: int = 0,
) -> Ladder:
    """Schedule a graph under several policies: one row each, with the lower bounds; a deadlock is a row, too.

    ``optimal`` is among them on request only; ``time_limit_s`` and ``seed`` are its own, as in :func:`schedule`.
    """
    return compare_policies(graph, machine, policies, effort, SolverLimit(time_limit_s, seed))


_LINT_ARGUMENTS = {
    "select": 'pass several codes: ["KS201", "KS3"]',
    "ignore": 'pass several codes: ["KS201", "KS3"]',
    "options": 'pass values by rule: {"KS102": {"percent": 80}}',
}


def lint(
    subject: Graph | Kernel | Launch | Callable[..., Any],
    /,
    *args: Any,
    ranks: int | None = None,
    grid: int | Sequence[int] | None = None,
    machine: Any = None,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    trace_twice: bool | None = None,
    **kwargs: Any,
) -> LintReport:
    """Lint a graph, or a kernel or launch (traced with overflow and accesses out of bounds recorded).

    ``select`` and ``ignore`` take codes or their beginnings (``"KS201"``, ``"KS2"``); ``options`` are values by rule:
    ``{"KS102": {"percent": 80}}``. ``trace_twice``: whether the kernel is traced a second time and has to do the same
    (KS701); None: where the first trace took less than a second, and the report's ``notes`` say where it took more.

    Raises ``RuleError`` for an unknown rule, ``OptionError`` for arguments of
    another kind, and what tracing raises.
    """
    for name, given, kind in (
        ("select", select, Iterable),
        ("ignore", ignore, Iterable),
        ("options", options, Mapping),
    ):
        if not isinstance(given, kind) and not (given is None and name == "options"):
            raise OptionError(f"{name}={shown(given)}", help=_LINT_ARGUMENTS[name])
    chosen: dict[str, Any] = {"select": select, "ignore": ignore, "options": options}
    if isinstance(subject, Graph):
        if trace_twice:
            raise OptionError("trace_twice with a graph", help="it was traced already: pass the kernel or its launch")
        described = None if machine is None else load_machine(machine)
        return lint_graph(Analysis(subject, described), title=subject.kernel, **chosen)
    subject = _with_default_launch(subject, args, kwargs)
    faults = {"on_overflow": "record", "on_bounds": "record"}
    traced = retracing(
        lambda: _trace(subject, args, kwargs, ranks=ranks, grid=grid, machine=machine, **faults),
        trace_twice,
        again=lambda: _trace(subject, args, kwargs, ranks=ranks, grid=grid, machine=machine, observe=True, **faults),
    )
    wanted = subject.machine if machine is None and isinstance(subject, Launch) else machine
    described = load_machine(DEFAULT_MACHINE if wanted is None else wanted)
    name = traced.graph.kernel
    title = f"{name}:{subject.name}" if isinstance(subject, Launch) and subject.name else name
    invocation = invocation_of(subject, args, kwargs, ranks=ranks, grid=grid, machine=machine)
    return lint_retraced(traced, described, title=title, twice=trace_twice, invocation=invocation, **chosen)


def lint_retraced(traced: Retraced, machine: Machine, *, twice: bool | None, **options: Any) -> LintReport:
    """Lint a graph with what came of tracing it again; its ``notes`` say where that was left out for its time."""
    report = lint_graph(Analysis(traced.graph, machine), again=traced.again, **options)
    if isinstance(traced.again, Graph):
        report = attrs.evolve(report, branches=traced.again.branches)
    if traced.again is not None or twice is not None:
        return report
    note = (
        f"{report.title}: traced once, as that took {traced.seconds:.1f} s: whether it repeats itself (KS701) is open"
    )
    return attrs.evolve(report, notes=(note,))


def run(
    graph: Graph,
    inputs: Mapping[str, Array] | None = None,
    order: str | Schedule | Sequence[int] = "program",
    poison: bool = False,
) -> dict[str, Array]:
    """Execute a graph on numbers; every stored tensor by name, in its own shape and dtype.

    A tensor without input starts with all bits set, with and without ``poison``: what is never stored comes back as NaN
    in every float dtype, -1 in signed and the largest number in unsigned integers, and true; KS504 names it.

    ``inputs`` are arrays by tensor name (default: those the kernel was traced with; never changed). ``order`` is
    ``"program"``, a schedule, or the ids of all nodes. ``poison`` fills rewound scratch with NaN. Raises ``InputError``
    for missing or unfit inputs, ``OrderError`` for an order that breaks an edge, ``ExecutionError`` for a graph with
    recorded faults.
    """
    expect_graph(graph, "run")
    if inputs is not None and not isinstance(inputs, Mapping):
        raise InputError(f"inputs={shown(inputs)}", help='pass arrays by tensor name: {"x": array}')
    return execute(graph, inputs, order, poison).outputs


def compare_with_launch(
    launch: Launch,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    unstored: Mapping[str, Unstored] = FrozenMap({}),
) -> list[Comparison]:
    """A launch's outputs beside what its reference function computes from the same inputs; empty without a reference.

    The reference is called with the arguments that its signature names: HBM tensors as arrays, the others as the launch
    sets them. It returns its results by name, or, of a kernel that stores one tensor, that array alone. Raises
    ``InputError`` where it names an argument that does not exist, or returns something else, and
    ``KernelRaisedError`` for what it raises.
    """
    if launch.reference is None:
        return []
    bound = launch.kernel.bind((), launch.arguments)
    parameters = inspect.signature(launch.reference).parameters
    given: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            given.update({k: inputs.get(k, v) for k, v in bound.arguments.items() if k not in parameters})
        elif name in inputs:
            given[name] = inputs[name]
        elif name in bound.arguments:
            given[name] = bound.arguments[name]
        elif parameter.default is parameter.empty:
            raise InputError(
                f"the reference of {launch.kernel.name} takes {name!r}, which is no argument of the kernel",
                help=f"it can take: {', '.join(bound.arguments)}",
            )
    try:
        expected: Any = launch.reference(**given)
    except TimeLimitError:
        raise
    except (Exception, SystemExit) as error:
        raise KernelRaisedError(
            f"the reference of {launch.kernel.name} raised {raised(error)}", help=_reference_help(given)
        ).at(author_place(error.__traceback__)) from error
    if isinstance(expected, np.ndarray) and len(outputs) == 1:
        expected = dict.fromkeys(outputs, expected)
    if not isinstance(expected, Mapping):
        names = ", ".join(f'"{name}": array' for name in outputs)
        raise InputError(
            f"the reference of {launch.kernel.name} returned {type(expected).__name__}",
            help=f"return the expected outputs by name: {{{names}}}",
        )
    return compare_with_reference(outputs, expected, launch.tolerance, unstored)


def _reference_help(given: Mapping[str, Any]) -> str:
    """What to do about a reference that raised: its own fault, unless it was called with something it cannot know."""
    for name, value in given.items():
        if not isinstance(value, np.ndarray | np.generic | bool | int | float | complex | str | None):
            return (
                f"it was called with {name}={shown(value)}, which is no array: leave {name} out of its parameters if "
                "the kernel only stores it, and pass data as arrays or ks.hbm(...), each in a parameter of its own"
            )
    return "the error is the reference's own"
