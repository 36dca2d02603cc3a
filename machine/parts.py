"""The parts of a machine description, and what each of their numbers may be. Units are in the names."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

import attrs

from ..ir import dtypes
from ..ir.ops import OPERATIONS, Cost, Family, Kind

__all__ = [
    "COMPOSITE",
    "Above0",
    "Cpu",
    "Dma",
    "Engine",
    "Gemm",
    "Link",
    "Math",
    "NumberRule",
    "Scratch",
    "Table",
    "TableKeys",
    "Topology",
    "Toward",
]

#: The name under which a composite's one issue is listed in ``cpu.issue_cycles``.
COMPOSITE = "composite"


@attrs.frozen
class NumberRule:
    """What a number of a machine description may be: its least value, whether that itself is allowed, whether it must
    be an integer, and the greatest value, where there is one."""

    words: str
    exclusive: bool
    integer: bool = False
    most: int | None = None

    def accepts(self, value: Fraction) -> bool:
        enough = value > 0 or (value == 0 and not self.exclusive)
        return enough and (self.most is None or value <= self.most) and (not self.integer or value.denominator == 1)


#: Sizes and counts: far inside int64, so that sums and products of a few of them cannot overflow.
COUNT = NumberRule("an integer above 0", exclusive=True, integer=True, most=1 << 48)
#: Lanes are rows in every picture of a schedule.
LANES = NumberRule("an integer from 1 to 1024", exclusive=True, integer=True, most=1024)
ABOVE_ZERO = NumberRule("a number above 0", exclusive=True)
NOT_NEGATIVE = NumberRule("a number, 0 or more", exclusive=False)

Count = Annotated[int, COUNT]
Lanes = Annotated[int, LANES]
Above0 = Annotated[Fraction, ABOVE_ZERO]
NotNegative = Annotated[Fraction, NOT_NEGATIVE]


@attrs.frozen
class TableKeys:
    """The keys a table of numbers may have besides ``default``, and what the numbers may be. ``fixed`` are names that
    always take the default, whatever anyone wishes; ``aliases`` are other spellings of a key."""

    keys: tuple[str, ...]
    number: NumberRule
    fixed: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()


@attrs.frozen
class Table:
    """Numbers by name, with a default for every name that is not listed."""

    default: Fraction
    listed: tuple[tuple[str, Fraction], ...] = ()

    def of(self, *names: str) -> Fraction:
        """The number of the first of the names that is listed, else the default."""
        for name in names:
            for key, value in self.listed:
                if key == name:
                    return value
        return self.default


_MATH = tuple(op for op in OPERATIONS.values() if op.kind is Kind.ELEMENTWISE)
#: Copies, fills and casts cost the default, whatever the dtype.
_PLAIN = tuple(op.name for op in _MATH if op.cost is Cost.MOVE)
_CLASSES = tuple(cost.value for cost in Cost if cost is not Cost.MOVE)
#: The engines that every machine of this format has, in the order in which a rank's are numbered.
_ENGINES = ("dma_read", "dma_write", "gemm", "math", "link")
_COMMANDS = tuple(op.name for op in OPERATIONS.values() if op.family is not Family.MARKER)

MATH_CYCLES = TableKeys(
    (*(op.name for op in _MATH if op.name not in _PLAIN), *_CLASSES), NOT_NEGATIVE, fixed=(*_PLAIN, Cost.MOVE.value)
)
GEMM_RATES = TableKeys(
    tuple(d.name for d in dtypes.ALL), ABOVE_ZERO, aliases=tuple((d.short, d.name) for d in dtypes.ALL)
)
ISSUE_CYCLES = TableKeys((*_COMMANDS, COMPOSITE, *_ENGINES), NOT_NEGATIVE)


@attrs.frozen
class Scratch:
    """Scratch memory of one rank: its bytes, and the alignment that sizes are rounded up to."""

    bytes: Count
    align: Count


@attrs.frozen
class Dma:
    """One direction of the DMA engine: ``channels`` transfers at once, each ``latency_ns + nbytes / bytes_per_ns``."""

    channels: Lanes
    latency_ns: NotNegative
    bytes_per_ns: Above0


@attrs.frozen
class Gemm:
    """The matrix engine: an array of ``rows`` x ``cols`` that takes ``rate`` steps of K a cycle, by operand dtype."""

    rows: Count
    cols: Count
    startup_cycles: NotNegative
    rate: Annotated[Table, GEMM_RATES]


@attrs.frozen
class Math:
    """The vector engine: ``lanes`` elements at once, ``cycles`` each: by operation, else by its class of cost
    (:class:`kernscope.ir.ops.operation.Cost`), else the default."""

    lanes: Count
    startup_cycles: NotNegative
    cycles: Annotated[Table, MATH_CYCLES]


@attrs.frozen
class Cpu:
    """The CPU's issue cost: by operation, else by engine, else the default. ``composite`` is an operation here; its
    engine is the GEMM."""

    issue_cycles: Annotated[Table, ISSUE_CYCLES] = Table(Fraction(0))


@attrs.frozen
class Toward:
    """What a link in one direction does otherwise than the others; None: the same."""

    latency_ns: NotNegative | None = None
    bytes_per_ns: Above0 | None = None


@attrs.frozen
class Link:
    """A link to a neighbour: one message at a time, ``latency_ns + nbytes / bytes_per_ns``; ``slots`` messages of a
    channel may wait at the receiver. A direction can have numbers of its own (``link.next.latency_ns``)."""

    latency_ns: NotNegative
    bytes_per_ns: Above0
    slots: Count
    next: Toward = Toward()
    prev: Toward = Toward()
    north: Toward = Toward()
    south: Toward = Toward()
    east: Toward = Toward()
    west: Toward = Toward()

    def toward(self, direction: str) -> Link:
        """The link in a direction, its own numbers in place of the common ones."""
        own: Toward = getattr(self, direction)
        return attrs.evolve(
            self,
            latency_ns=self.latency_ns if own.latency_ns is None else own.latency_ns,
            bytes_per_ns=self.bytes_per_ns if own.bytes_per_ns is None else own.bytes_per_ns,
        )


@attrs.frozen
class Engine:
    """An engine of a rank: what it is called, the kind of work it does, on how many nodes at once, the memories that it
    reads and writes, and the part of the description that says what its work costs. A link stands for one of each
    direction."""

    name: str
    kind: Kind
    channels: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    cost: Dma | Gemm | Math | Link


@attrs.frozen
class Topology:
    """How ranks are joined: a ``"ring"``, or a ``"mesh2d"`` of ``shape`` (rows, cols), joined at its borders or not."""

    kind: str = "ring"
    shape: tuple[Count, ...] = ()
    wraps: bool = False
