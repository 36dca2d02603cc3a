"""Which way a kernel's branches went in a graph, and in the kernel's other launches: for a report of one of them."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable, Mapping

import attrs

from ..ir.branches import Branches
from ..ir.errors import TimeLimitError
from ..ir.graph import Graph
from ..machine.description import load_machine
from ..tracer.kernel import Launch
from . import api
from .guard.guard import Guard

__all__ = ["BranchesOf", "Watch", "branches_of", "guarded_watch", "watched"]

#: Traces a launch and keeps an eye on its branches.
Watch = Callable[[Launch], Graph]
#: Larger launches are not traced for this: so many nodes take half a second.
_MOST_NODES = 25_000
#: After so long no other launch is begun, in seconds.
_AT_MOST_S = 1.0


@attrs.frozen
class BranchesOf:
    """The branches that a graph's trace took (None: not known), those of the kernel's other launches by name, and the
    names of launches that are too large to be looked at in passing, or that do not trace."""

    own: Branches | None
    others: Mapping[str, Branches]
    left: tuple[str, ...]


def watched(launch: Launch) -> Graph:
    """A launch traced for its own machine. Raises ``NodeLimitError`` for one that is too large, and what tracing
    raises."""
    return api.trace_for(launch, load_machine(launch.machine), record=True, observe=True, max_nodes=_MOST_NODES)


def guarded_watch(guard: Guard | None) -> Watch:
    """The same, for an author's code that a guard runs (None: nobody's)."""
    if guard is None:
        return watched
    known = guard

    def watch(launch: Launch) -> Graph:
        with known.running(f"tracing {launch.kernel.name} ({launch.name})"):
            return watched(launch)

    return watch


def branches_of(graph: Graph, launch: Launch | None, watch: Watch = watched) -> BranchesOf:
    """What is known of the branches of a graph, whose launch is given where there is one. Raises ``TimeLimitError``."""
    if launch is None:
        return BranchesOf(graph.branches, {}, ())
    own = graph.branches
    if own is None and len(graph) <= _MOST_NODES:
        again = _quietly(launch, watch)
        own = again.branches if again is not None and again == graph else None  # of other arguments it says nothing
    if own is None:
        return BranchesOf(None, {}, ())
    found: dict[str, Branches] = {}
    left: list[str] = []
    begin = time.perf_counter()
    for name, other in launch.kernel.launches.items():
        if name == launch.name:
            continue
        its = _quietly(other, watch) if time.perf_counter() - begin < _AT_MOST_S else None
        if its is None or its.branches is None:
            left.append(name)
        else:
            found[name] = its.branches
    return BranchesOf(own, found, tuple(left))


def _quietly(launch: Launch, watch: Watch) -> Graph | None:
    # What the author's code prints was not asked for, and what it raises belongs to another report.
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            return watch(launch)
        except TimeLimitError:
            raise
        except Exception:
            return None
