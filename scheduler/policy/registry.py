"""The policies as data: what the CPU waits for before a command, what it holds on to after it, in which order engines
work. Whatever depends on the policy reads it here: constraints, causes, slack, the price of reuse, deadlocks, the
checker (from the schedule), and every command. A policy more is an entry more.
"""

from __future__ import annotations

import enum

import attrs

from ...ir.errors import PolicyError, did_you_mean, shown
from ...ir.tables import Reason

__all__ = ["BLOCKING", "LADDER", "LAZY", "LIST", "OPTIMAL", "POLICIES", "QUEUED", "Holds", "Policy", "policy_of"]


class Holds(enum.StrEnum):
    """Which commands hold the CPU until all their nodes have ended; after the others it goes on at their issue."""

    NONE = "none"
    SYNCHRONOUS = "synchronous"
    """All but the asynchronous ones: loads, posted receives, sends, composites."""
    ALL = "all"


@attrs.frozen
class Policy:
    """A policy. ``waits_for``: the reasons of edges from other commands for whose ends the CPU waits before it issues
    a command. ``holds``: which commands keep it. ``in_order``: an engine starts its nodes in program order; else any
    order that the edges allow is searched. ``exact``: the search is a solver's, with proof. ``on_request``: left out
    where no policy is named, as it may take as long as it is given."""

    name: str
    waits_for: frozenset[Reason] = frozenset()
    holds: Holds = Holds.NONE
    in_order: bool = True
    exact: bool = False
    on_request: bool = False

    @property
    def holds_cpu(self) -> bool:
        """Whether the CPU ever waits: else every issue ends at a time known beforehand."""
        return bool(self.waits_for) or self.holds is not Holds.NONE

    def __str__(self) -> str:
        return self.name


#: The data of a command is there anyway, once the one before has ended. A full channel holds the CPU under both of the
#: first two, before the issue: else an issue cost could hide behind that wait under `blocking` only, and `lazy` would
#: come out slower.
BLOCKING = Policy("blocking", frozenset({Reason.CREDIT}), Holds.ALL)
LAZY = Policy("lazy", frozenset({Reason.DATA, Reason.CREDIT}), Holds.SYNCHRONOUS)
QUEUED = Policy("queued")
LIST = Policy("list", in_order=False)
OPTIMAL = Policy("optimal", in_order=False, exact=True, on_request=True)

#: By name, from the strictest to the freest: each is never slower than the one before.
POLICIES = {policy.name: policy for policy in (BLOCKING, LAZY, QUEUED, LIST, OPTIMAL)}
#: The names that stand for "all of them": without those on request.
LADDER = tuple(policy.name for policy in POLICIES.values() if not policy.on_request)


def policy_of(name: object) -> Policy:
    """The policy of a name. Raises ``PolicyError`` for an unknown one."""
    if not isinstance(name, str) or name not in POLICIES:
        raise PolicyError(f"no policy {shown(name)}", help=did_you_mean(str(name), tuple(POLICIES), what="policies"))
    return POLICIES[name]
