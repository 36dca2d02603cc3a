"""How findings on the data of a launch name lines and programs."""

from __future__ import annotations

from ...ir.launch_facts import LaunchFact
from ..findings import Place

__all__ = ["fact_places"]


def fact_places(fact: LaunchFact, here: str, other: str = "") -> tuple[Place, ...]:
    """The places of a fact with the parts that they play; the other one only where it is another line."""
    places = [(here, fact.place), (other, fact.other_place if fact.other_place != fact.place else None)]
    return tuple(Place(role, place) for role, place in places if place is not None)
