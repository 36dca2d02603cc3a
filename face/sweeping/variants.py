"""What the axes of a sweep vary: from the values of one point to a launch, a machine, a policy and buffers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from ...ir.arrays.frozen_map import FrozenMap
from ...ir.errors import ArgumentError, did_you_mean, shown
from ...machine.description import DEFAULT_MACHINE, load_machine
from ...scheduler.policy.registry import policy_of
from ...tracer.kernel import Kernel, Launch
from ..examining import Examined, Tracer, examine

__all__ = ["OWN_AXES", "Base", "check_axis", "is_parameter"]

#: Axes that are no parameter of the kernel. A parameter of that name comes before.
OWN_AXES = ("launch", "policy", "buffers", "ranks", "machine")
_FIELD = "machine."


def is_parameter(kernel: Kernel, axis: str) -> bool:
    """Whether an axis is one of the kernel's parameters."""
    return axis in kernel.signature.parameters


def check_axis(kernel: Kernel, axis: object, machines: Iterable[Any]) -> None:
    """Raise ``ArgumentError`` for what a sweep cannot vary: a field is one of some of the ``machines`` (None: the
    default one)."""
    if not isinstance(axis, str):
        raise ArgumentError(f"axis {shown(axis)} is no name", help="pass a parameter's name, such as 'tile'")
    takes_any = any(p.kind is p.VAR_KEYWORD for p in kernel.signature.parameters.values())
    if is_parameter(kernel, axis) or axis in OWN_AXES or (takes_any and axis.isidentifier()):
        return
    described = [load_machine(DEFAULT_MACHINE if machine is None else machine) for machine in machines]
    fields = list(dict.fromkeys(f"{_FIELD}{path}" for machine in described for path in machine.field_names))
    if axis in fields:
        return
    names = fields if axis.startswith(_FIELD) else [*kernel.signature.parameters, *OWN_AXES]
    raise ArgumentError(
        f"nothing called {shown(axis)} to vary in kernel {kernel.name}",
        help=did_you_mean(axis, names, what="it can be machine.<field>, or one of"),
    )


@attrs.frozen
class Base:
    """What all points share. ``given`` are the arguments that hold whatever the launch; so do ``ranks`` and ``grid``
    where they are given; a ``machine`` of None is the launch's own."""

    launch: Launch
    given: Mapping[str, Any]
    machine: Any = None
    overrides: Mapping[str, str] = attrs.field(factory=dict)
    policy: str = "list"
    effort: str = "fast"
    ranks: int | None = None
    grid: tuple[int, ...] = ()

    def examine(self, point: Mapping[str, Any], trace: Tracer) -> Examined:
        """One point. Raises what is wrong with its launch, machine, policy or ranks as a whole."""
        kernel = self.launch.kernel
        own = {axis: value for axis, value in point.items() if axis in OWN_AXES and not is_parameter(kernel, axis)}
        fields = {axis[len(_FIELD) :]: str(value) for axis, value in point.items() if axis.startswith(_FIELD)}
        varied = {axis: value for axis, value in point.items() if axis not in own and not axis.startswith(_FIELD)}
        launch = self.launch
        if "launch" in own:
            named = kernel.launch(str(own["launch"]))
            launch = attrs.evolve(
                named,
                arguments=FrozenMap({**named.arguments, **self.given}),
                ranks=named.ranks if self.ranks is None else self.ranks,
                grid=self.grid or named.grid,
            )
        launch = attrs.evolve(
            launch,
            arguments=FrozenMap({**launch.arguments, **varied}),
            ranks=_whole("ranks", own["ranks"]) if "ranks" in own else launch.ranks,
        )
        machine = own.get("machine", launch.machine if self.machine is None else self.machine)
        described = load_machine(DEFAULT_MACHINE if machine is None else machine).override({**self.overrides, **fields})
        return examine(
            launch,
            described,
            trace,
            policy=policy_of(own.get("policy", self.policy)).name,
            effort=self.effort,
            buffers=_whole("buffers", own["buffers"]) if "buffers" in own else None,
        )


def _whole(axis: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = 0
    if number < 1 or isinstance(value, float):
        raise ArgumentError(f"{axis} {shown(value)}", help="pass whole numbers from 1 on")
    return number
