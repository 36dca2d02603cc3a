"""The parts of a machine description, and what each of their numbers may be. Units are in the names."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, TypeVar

import attrs

from ..ir import dtypes
from ..ir.arrays.frozen_map import FrozenMap
from ..ir.ops import OPERATIONS, Cost, Family, Kind

__all__ = [
    "COMPOSITE",
    "ENGINE_KINDS",
    "ISSUE_CYCLES",
    "NOTHING_LISTED",
    "TAKEABLE",
    "Above0",
    "Cpu",
    "Elementwise",
    "Engine",
    "EnginePart",
    "Limits",
    "Link",
    "Listed",
    "Matmul",
    "MemoryPart",
    "NumberRule",
    "Table",
    "TableKeys",
    "Topology",
    "Toward",
    "Transfer",
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
SHARE = NumberRule("a number above 0, at most 1", exclusive=True, most=1)

Count = Annotated[int, COUNT]
Lanes = Annotated[int, LANES]
Above0 = Annotated[Fraction, ABOVE_ZERO]
NotNegative = Annotated[Fraction, NOT_NEGATIVE]
Share = Annotated[Fraction, SHARE]


@attrs.frozen
class TableKeys:
    """The keys a table of numbers may have besides ``default``, and what the numbers may be. ``fixed`` are names that
    always take the default, whatever anyone wishes; ``aliases`` are other spellings of a key; ``with_engines``: the
    machine's own engines are keys, too."""

    keys: tuple[str, ...]
    number: NumberRule
    fixed: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    with_engines: bool = False


@attrs.frozen
class Table:
    """Numbers by name, with a default for every name that is not listed."""

    default: Fraction
    listed: tuple[tuple[str, Fraction], ...] = ()

    def lists(self, name: str) -> bool:
        """Whether a name has a number of its own."""
        return any(key == name for key, _ in self.listed)

    def of(self, *names: str) -> Fraction:
        """The number of the first of the names that is listed, else the default."""
        for name in names:
            for key, value in self.listed:
                if key == name:
                    return value
        return self.default


_K = TypeVar("_K")
_V = TypeVar("_V")


class Listed(FrozenMap[_K, _V]):
    """What a machine lists by name, in its order, which counts: equal where names, values and order are."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Listed) and tuple(self.items()) == tuple(other.items())

    def __hash__(self) -> int:
        return hash(tuple(self.items()))

    def __reduce__(self) -> tuple[type, tuple[dict[_K, _V]]]:
        return Listed, (dict(self),)


NOTHING_LISTED: Listed[str, Any] = Listed({})

_MATH = tuple(op for op in OPERATIONS.values() if op.kind is Kind.ELEMENTWISE)
#: Copies, fills and casts cost the default, whatever the dtype.
_PLAIN = tuple(op.name for op in _MATH if op.cost is Cost.MOVE)
_CLASSES = tuple(cost.value for cost in Cost if cost is not Cost.MOVE)
_COMMANDS = tuple(op.name for op in OPERATIONS.values() if op.family is not Family.MARKER)
#: What an engine may say that it takes: operations by name, by their class of cost, or by the kind of their engine.
TAKEABLE = (
    *(op.name for op in OPERATIONS.values() if op.kind is not Kind.NONE),
    *_CLASSES,
    *(kind.value for kind in Kind if kind is not Kind.NONE),
)

MATH_CYCLES = TableKeys(
    (*_CLASSES, *(op.name for op in _MATH if op.name not in _PLAIN)), NOT_NEGATIVE, fixed=(*_PLAIN, Cost.MOVE.value)
)
_DTYPES = tuple(d.name for d in dtypes.ALL)
_SHORT = tuple((d.short, d.name) for d in dtypes.ALL)
BY_DTYPE = TableKeys(_DTYPES, ABOVE_ZERO, aliases=_SHORT)
ISSUE_CYCLES = TableKeys((*_COMMANDS, COMPOSITE), NOT_NEGATIVE, with_engines=True)
_ONE = Table(Fraction(1))


# --- memories ---------------------------------------------------------------------------------------------------------


@attrs.frozen
class MemoryPart:
    """A memory. ``scope``: ``"rank"`` (each rank has ``bytes`` of its own, sizes rounded up to ``align``),
    ``"global"`` (where tensors lie: exactly one), or ``"level"``: a level in front of the global one, whose ``bytes``
    all ranks share. ``bytes_per_ns``: what all ranks together get out of a shared one. ``partitions``: axis 0 of a tile
    lies across so many, and engines work on all of them at once."""

    bytes: Count | None = None
    align: Count = 1
    scope: str = "rank"
    bytes_per_ns: Above0 | None = None
    partitions: Count | None = None


# --- engines ----------------------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class EnginePart:
    """What engines of all kinds say: the memories that they read and write, how many nodes they work on at once, which
    operations they take (``ops``; empty: all of their kind), and their clock where it is not the machine's.
    ``operands``: by operand, from the first on, those of the memories that it is read from; of further ones any."""

    of_kind: ClassVar[Kind] = Kind.NONE
    kind: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    ops: tuple[str, ...] = ()
    operands: tuple[tuple[str, ...], ...] = ()
    lanes_of_work: Lanes = 1
    clock_ghz: Above0 | None = None

    @property
    def channels(self) -> int:
        """How many nodes it works on at once."""
        return self.lanes_of_work


@attrs.frozen(kw_only=True)
class Transfer(EnginePart):
    """A DMA engine: each transfer takes ``latency_ns + nbytes / bytes_per_ns``.

    ``pipelined``: the latency does not hold the engine. ``spread``: one transfer runs on so many of the queues
    (``lanes_of_work``) at once. ``efficiency``: pairs of (bytes of a contiguous run in global memory, share of the
    rate), linear between them, the first below the first, the last above the last."""

    of_kind = Kind.TRANSFER
    latency_ns: NotNegative = Fraction(0)
    bytes_per_ns: Above0
    pipelined: bool = False
    spread: Lanes = 1
    efficiency: tuple[tuple[Fraction, Fraction], ...] = ()

    @property
    def channels(self) -> int:
        return max(self.lanes_of_work // self.spread, 1)


@attrs.frozen
class Limits:
    """The largest M, N and K of one pass; None: any."""

    m: Count | None = None
    n: Count | None = None
    k: Count | None = None


@attrs.frozen(kw_only=True)
class Matmul(EnginePart):
    """A matrix engine: an array of ``rows`` x ``cols`` that takes ``rate`` steps of K a cycle, by operand dtype.

    A product beyond ``limits`` goes in passes, each with its ``startup_cycles`` and no shorter than ``least_cycles``.
    ``feed_bytes_per_ns``: how fast the operands of a pass get into the array. ``latency_cycles``: how long after it has
    let go of the engine a product is there."""

    of_kind = Kind.MATMUL
    rows: Count
    cols: Count
    startup_cycles: NotNegative
    rate: Annotated[Table, BY_DTYPE] = _ONE
    least_cycles: NotNegative = Fraction(0)
    latency_cycles: NotNegative = Fraction(0)
    limits: Limits = Limits()
    feed_bytes_per_ns: Above0 | None = None


@attrs.frozen(kw_only=True)
class Elementwise(EnginePart):
    """A vector engine: ``lanes`` elements at once, ``cycles`` each: by operation, else by its class of cost
    (:class:`kernscope.ir.ops.operation.Cost`), else the default; times a factor by dtype, and one where two operands
    lie in the same memory (``both_in``: by memory, then by dtype). ``startup_cycles`` are those of an instruction,
    ``latency_cycles`` how long after it has let go of the engine a result is there."""

    of_kind = Kind.ELEMENTWISE
    lanes: Count
    startup_cycles: NotNegative
    cycles: Annotated[Table, MATH_CYCLES] = _ONE
    dtype: Annotated[Table, BY_DTYPE] = _ONE
    both_in: Listed[str, Table] = NOTHING_LISTED
    latency_cycles: NotNegative = Fraction(0)


@attrs.frozen
class Toward:
    """What a link in one direction does otherwise than the others; None: the same."""

    latency_ns: NotNegative | None = None
    bytes_per_ns: Above0 | None = None


@attrs.frozen(kw_only=True)
class Link(EnginePart):
    """A link to a neighbour: one message at a time, ``latency_ns + nbytes / bytes_per_ns``; ``slots`` messages of a
    channel may wait at the receiver. A direction can have numbers of its own (``link.next.latency_ns``)."""

    of_kind = Kind.LINK
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


#: The classes of engines by what their ``kind`` says.
ENGINE_KINDS: Mapping[str, type[EnginePart]] = MappingProxyType(
    {part.of_kind.value: part for part in (Transfer, Matmul, Elementwise, Link)}
)


@attrs.frozen
class Engine:
    """An engine of a rank: what it is called, the kind of work it does, on how many nodes at once, the memories that it
    reads and writes (``operands``: by operand), the operations it takes (none listed: all of its kind), and the part of
    the description that says what its work costs. A link stands for one of each direction."""

    name: str
    kind: Kind
    channels: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    cost: EnginePart
    ops: tuple[str, ...] = ()
    operands: tuple[tuple[str, ...], ...] = ()


# --- the rest ---------------------------------------------------------------------------------------------------------


@attrs.frozen
class Cpu:
    """The CPU's issue cost: by operation, else by engine, else the default. ``composite`` is an operation here; its
    engine is the first for products."""

    issue_cycles: Annotated[Table, ISSUE_CYCLES] = Table(Fraction(0))


@attrs.frozen
class Topology:
    """How ranks are joined: a ``"ring"``, or a ``"mesh2d"`` of ``shape`` (rows, cols), joined at its borders or not."""

    kind: str = "ring"
    shape: tuple[Count, ...] = ()
    wraps: bool = False
