"""``ks.sweep``: every combination of values, in this process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs

from ...ir.errors import ArgumentError, KernscopeError, shown
from ...scheduler.policy.registry import policy_of
from ...scheduler.search.efforts import check_effort
from ...tracer.kernel import Kernel, Launch
from .. import api
from ..fitting import as_launch
from .result import Sweep, SweepRow, failed_row, row_of
from .variants import Base, check_axis

__all__ = ["MAX_POINTS", "points_of", "sweep"]

#: Each is traced and scheduled; more of them are a mistake in an axis.
MAX_POINTS = 100_000


def sweep(
    kernel: Kernel | Launch | Callable[..., Any],
    axes: Mapping[str, Iterable[Any]],
    /,
    *,
    policy: str = "list",
    effort: str = "fast",
    ranks: int | None = None,
    machine: Any = None,
    **arguments: Any,
) -> Sweep:
    """Try every combination of values: makespan, bound and scratch of each, and the front of time against scratch.

    ``axes`` names what varies, the last fastest: parameters of the kernel; ``"launch"``, ``"policy"``, ``"buffers"``,
    ``"ranks"``, ``"machine"``; and fields of the machine, ``"machine.gemm.rows"``. ``kernel`` and ``arguments`` as in
    :func:`kernscope.fit`; ``policy`` and ``effort`` hold where no axis says otherwise.

    A point at which the kernel raises, overflows, deadlocks or has an error of the linter is a row that says so. All is
    done in this process, one point after the other; ``kernscope sweep`` uses several, or a cluster, and can resume.

    Raises ``ArgumentError`` for what cannot be varied, an axis without values, or more than 100,000 points;
    ``PolicyError`` and ``OptionError`` for an unknown policy and effort.
    """
    launch = as_launch(kernel, arguments)
    launch = attrs.evolve(launch, ranks=launch.ranks if ranks is None else ranks)
    policy_of(policy)
    check_effort(effort)
    base = Base(launch, arguments, machine, policy=policy, effort=effort, ranks=ranks)
    points = points_of(launch.kernel, axes, launch.machine if machine is None else machine)
    return Sweep(title_of(launch, axes), tuple(axes), tuple(_row(base, point) for point in points))


def title_of(launch: Launch, axes: Iterable[str]) -> str:
    """What is swept: the kernel, and its launch where that has a name and is no axis itself."""
    name = launch.kernel.name
    return f"{name}:{launch.name}" if launch.name and "launch" not in axes else name


def points_of(kernel: Kernel, axes: Mapping[str, Iterable[Any]], machine: Any) -> list[dict[str, Any]]:
    """All combinations, the last axis varying fastest; ``machine`` holds where it is no axis. Raises
    ``ArgumentError``, and ``MachineError`` for a machine that there is not."""
    if not isinstance(axes, Mapping) or not axes:
        raise ArgumentError(f"axes {shown(axes)}", help="pass values by name: {'tile': [64, 128]}")
    own = "machine" in axes and "machine" not in kernel.signature.parameters
    machines = list(_distinct("machine", axes["machine"])) if own else [machine]
    for axis in axes:
        check_axis(kernel, axis, machines)
    values = {axis: list(_distinct(axis, given)) for axis, given in axes.items()}
    total = 1
    for axis, known in values.items():
        if not known:
            raise ArgumentError(f"axis {axis!r} has no values", help="pass at least one")
        total *= len(known)
    if total > MAX_POINTS:
        raise ArgumentError(f"{total:,} points, more than {MAX_POINTS:,}", help="take fewer values")
    return [dict(zip(values, combination, strict=True)) for combination in itertools.product(*values.values())]


def _distinct(axis: str, given: Iterable[Any]) -> Iterator[Any]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ArgumentError(f"values {shown(given)} of axis {axis!r}", help="pass a list, such as [64, 128]")
    seen: list[Any] = []
    for value in itertools.islice(given, MAX_POINTS + 1):
        if value not in seen:
            seen.append(value)
            yield value


def _row(base: Base, point: Mapping[str, Any]) -> SweepRow:
    try:
        return row_of(point, base.examine(point, lambda launch, machine: api.trace_for(launch, machine, record=True)))
    except KernscopeError as error:
        return failed_row(point, error)
