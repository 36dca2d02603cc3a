"""What a search may do: the efforts, and the numbers that callers choose them by."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs
import numpy as np

from ...ir.errors import PolicyError, did_you_mean, shown
from .bounding import QUICK, BoundEffort
from .priorities import PRIORITIES

__all__ = ["EFFORTS", "Effort", "check_effort", "check_seed"]


@attrs.frozen
class Effort:
    """What a search may do beyond the effort ``below`` it, from whose schedule it goes on: so it is never worse. Which
    priority rules it tries, how many rounds of forward-backward improvement (two passes each), for which waits it makes
    active schedules (in thousandths: :mod:`.active`), how many restarts from a perturbed priority (three passes each),
    and how many nodes and edges the local search may visit. ``bounds``: what is done for a lower bound; the search is
    content within ``gap`` of it."""

    below: Effort | None
    rules: tuple[str, ...]
    gap: float
    rounds: int = 0
    waits: tuple[int, ...] = ()
    restarts: int = 0
    visits: int = 0
    bounds: BoundEffort = QUICK

    def contented_ps(self, bound_ps: int) -> int:
        """The makespan at which the search stops."""
        return bound_ps + int(bound_ps * self.gap)


_FAST = Effort(None, ("longest_path", "program_order"), 0.01)
_NORMAL = Effort(
    _FAST,
    tuple(PRIORITIES),
    0.001,
    rounds=4,
    waits=(500,),
    visits=150_000,
    bounds=BoundEffort(
        (10, 50),
        window_steps=15_000_000,
        steps_a_node=1_500,
        refuting=(60_000, 80_000_000),
        probing=(20_000, 30_000_000),
        largest=10_000,
    ),
)
_HIGH = Effort(
    _NORMAL,
    (),
    0.0,
    rounds=16,
    waits=(200, 400, 600, 800, 1000),
    restarts=16,
    visits=30_000_000,
    bounds=BoundEffort(
        (200,),
        window_steps=50_000_000,
        steps_a_node=5_000,
        refuting=(100_000, 500_000_000),
        probing=(200_000, 300_000_000),
        largest=50_000,
    ),
)
#: ``fast``: the longest path and program order. ``normal``: all rules, up to four rounds, and a local search of some
#: tenth of a second in plain Python; bounds of some seconds in plain Python, where a gap is left. ``high``: also
#: restarts, a local search of a second compiled (a good ten seconds in plain Python), ten times as much for the bounds,
#: and no contentment.
EFFORTS: Mapping[str, Effort] = MappingProxyType({"fast": _FAST, "normal": _NORMAL, "high": _HIGH})


def check_seed(seed: int) -> int:
    """The seed of a search's choices. Raises ``PolicyError`` for what is none."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 1 << 31:
        raise PolicyError(f"a seed of {shown(seed)}", help="give a whole number from 0 to 2147483647")
    return int(seed)


def check_effort(effort: str) -> Effort:
    """The effort of a name. Raises ``PolicyError`` for an unknown one."""
    if not isinstance(effort, str) or effort not in EFFORTS:
        raise PolicyError(f"no effort {shown(effort)}", help=did_you_mean(str(effort), EFFORTS, what="efforts"))
    return EFFORTS[effort]
