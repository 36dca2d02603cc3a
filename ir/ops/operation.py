"""What an operation is: one declaration holds its name, effects, engine, work, shape rule, evaluation and
documentation.

The recorder and the verifier call the same ``rule``; the machine's latency reads the same ``work``; the numpy backend
calls the same ``evaluate``; the kernel language takes its functions, operators and docstrings from here.
"""

from __future__ import annotations

import enum
import keyword
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from ..dtypes import DType
from ..indices import Index
from ..layout import Layout, Shape

__all__ = [
    "NO_WORK",
    "Cost",
    "End",
    "Family",
    "Kind",
    "Linear",
    "Operand",
    "Operation",
    "OperationTable",
    "Orders",
    "Scalar",
    "Space",
    "Work",
    "WorkKind",
    "input_elements",
    "operand_dtypes",
    "output_elements",
]

Scalar = bool | int | float
Operand = Layout | Scalar
Work = tuple[int, int, int]
NO_WORK: Work = (0, 0, 0)
BoolArray = np.ndarray[Any, np.dtype[np.bool_]]


class Kind(enum.StrEnum):
    """The kind of engine that carries an operation out; a machine says which of its engines does. ``NONE``: none."""

    TRANSFER = "transfer"
    MATMUL = "matmul"
    ELEMENTWISE = "elementwise"
    LINK = "link"
    NONE = "none"


class Cost(enum.StrEnum):
    """What an operation of the elementwise kind costs where a machine does not list it by name: its class."""

    MOVE = "move"
    """Values as they are, or converted: always the machine's default, never listed."""
    SIMPLE = "simple"
    DIVISION = "division"
    TRANSCENDENTAL = "transcendental"
    REDUCTION = "reduction"
    SCAN = "scan"


class Family(enum.StrEnum):
    """How an operation is called and what it does to its operands."""

    MEMORY = "memory"
    CREATION = "creation"
    UNARY = "unary"
    BINARY = "binary"
    TERNARY = "ternary"
    CAST = "cast"
    REDUCTION = "reduction"
    SOFTMAX = "softmax"
    RECURRENCE = "recurrence"
    ORDER = "order"
    REARRANGEMENT = "rearrangement"
    CONTRACTION = "contraction"
    MESSAGE = "message"
    CONTROL = "control"
    MARKER = "marker"


class WorkKind(enum.StrEnum):
    """What the three numbers of a node's work are: ``(nbytes, 0, 0)``, ``(M, N, K)``, ``(elements, 0, 0)`` or
    nothing."""

    BYTES = "bytes"
    MNK = "mnk"
    ELEMENTS = "elements"
    NOTHING = "nothing"


class Space(enum.StrEnum):
    """Where an operation's operands lie, or its result: in a memory of the rank's own, in the global one, or nowhere
    (it has none)."""

    SCRATCH = "scratch"
    GLOBAL = "global"
    NOWHERE = "nowhere"


class End(enum.StrEnum):
    """Which end of a channel an operation is."""

    SENDS = "sends"
    RECEIVES = "receives"


class Orders(enum.StrEnum):
    """Which accesses of the global memory an operation orders, of those on its rank: all that come before it in program
    order end before it begins, or all that come after it begin when it has ended."""

    BEFORE = "before"
    AFTER = "after"


_WORK_OF = {
    Kind.TRANSFER: WorkKind.BYTES,
    Kind.LINK: WorkKind.BYTES,
    Kind.MATMUL: WorkKind.MNK,
    Kind.ELEMENTWISE: WorkKind.ELEMENTS,
    Kind.NONE: WorkKind.NOTHING,
}


_ENGINE_NAMES = {Kind.MATMUL: "gemm", Kind.ELEMENTWISE: "math", Kind.LINK: "link", Kind.NONE: "none"}


@attrs.frozen
class Linear:
    """In which operands (by place) a result is linear: in each alone, or, where ``jointly``, also in several of them at
    once, as a sum is. ``adds`` marks what can accumulate: the others only scale, select or convert."""

    operands: tuple[int, ...]
    jointly: bool = True
    adds: bool = False


@attrs.frozen(eq=False)
class Operation:
    """One operation of the graph.

    ``rule(operands, **static)`` gives the result's shape and dtype and raises ``ShapeError`` or ``DTypeError``.
    ``evaluate(*operands, **static)`` computes on numpy arrays of the operands' own dtypes, in program meaning; it gets
    ``result`` (the dtype of the result) among the static values and returns an array of exactly that dtype.
    ``work(operands, result)`` counts what has to be done, with no machine in it.
    ``kind`` is that of the engine it runs on, ``cost`` its class among those of the elementwise kind (the others have
    none). Its operands lie in ``reads_from`` (those after the first, where ``then_from`` names places: in these, the
    last of them for all that follow), its result in ``writes_to``; ``end`` says which end of a message it is, if any;
    ``orders`` which accesses it waits for, or holds back; ``linear`` in which operands its result is linear, if in any;
    ``copies``, that it writes its operand, unchanged, to a place that is named. ``by_index``: its last operand is an
    index tile, which says when it is executed which rows (along its ``axis``) of its view of the global memory it
    accesses. ``atomic``: each element is read and changed there as one step, whoever else does so. ``like`` names the
    plain operation that engines list which carry this one out, too; ``parts`` the operations that it takes, one after
    the other, where an engine does not list it by name.
    ``log`` is the log entry ``kind/name``, empty for a node without one. ``asynchronous`` operations let the CPU go on
    after their issue under the ``lazy`` policy. ``public`` operations have a function of ``tl`` that is made from the
    declaration, named ``function``; the others have functions of their own there.
    """

    name: str
    family: Family
    kind: Kind
    log: str
    rule: Callable[..., tuple[Shape, DType]]
    evaluate: Callable[..., Any]
    work: Callable[[Sequence[Operand], Layout], Work]
    doc: str
    cost: Cost | None = None
    reads_from: Space = Space.SCRATCH
    then_from: tuple[Space, ...] = ()
    writes_to: Space = Space.SCRATCH
    end: End | None = None
    orders: Orders | None = None
    linear: Linear | None = None
    copies: bool = False
    by_index: bool = False
    like: str = ""
    parts: tuple[str, ...] = ()
    atomic: bool = False
    asynchronous: bool = False
    public: bool = True

    def __attrs_post_init__(self) -> None:
        assert (self.kind is Kind.ELEMENTWISE) == (self.cost is not None), f"what does {self.name} cost? see Cost"

    @property
    def work_kind(self) -> WorkKind:
        """The meaning of the three work numbers."""
        return _WORK_OF[self.kind]

    def space_of(self, place: int) -> Space:
        """Where the operand at a place (among those that are tensors) lies."""
        if place == 0 or not self.then_from:
            return self.reads_from
        return self.then_from[min(place, len(self.then_from)) - 1]

    def work_of(self, operands: Sequence[Operand], result: Layout, static: Mapping[str, Any]) -> Work:
        """The work of a node: of one with an index, the bytes of the elements that it names."""
        index = static.get("index")
        if isinstance(index, Index):
            return (index.count * result.dtype.itemsize, 0, 0)
        return self.work(operands, result)

    @property
    def engine(self) -> str:
        """What the founding accelerator calls the engine that it runs on, and pictures where no machine is known:
        ``"dma_read"``, ``"dma_write"``, ``"gemm"``, ``"math"``, ``"link"``; ``"none"``."""
        if self.kind is not Kind.TRANSFER:
            return _ENGINE_NAMES[self.kind]
        into = {Space.GLOBAL: "dma_write"}.get(self.writes_to, "dma_read")
        return into if Space.GLOBAL in (self.reads_from, self.writes_to) else "dma"

    @property
    def function(self) -> str:
        """The name of its function in ``tl``: its own, or ``and_`` for one that Python keeps to itself."""
        return f"{self.name}_" if keyword.iskeyword(self.name) else self.name

    @property
    def is_marker(self) -> bool:
        """Whether it opens or closes a scope."""
        return self.family is Family.MARKER

    @property
    def in_parts(self) -> bool:
        """Whether it can be carried out on any part of its operands alone: each element of the result depends on the
        same element of each operand."""
        return self.copies or self.family in (Family.UNARY, Family.BINARY, Family.TERNARY, Family.CAST)


class OperationTable(Mapping[str, Operation]):
    """All operations by name. Their numbers in a graph's columns are their places in ``names``, in order of
    declaration; a saved graph carries the names, so that a new operation renumbers nothing."""

    def __init__(self) -> None:
        self._by_name: dict[str, Operation] = {}
        self._by_code: list[Operation] = []
        self._code_of: dict[str, int] = {}

    def add(self, operation: Operation) -> Operation:
        """Register a declaration. Two of one name are our own mistake."""
        assert operation.name not in self._by_name, f"operation {operation.name} is declared twice"
        self._code_of[operation.name] = len(self._by_code)
        self._by_name[operation.name] = operation
        self._by_code.append(operation)
        return operation

    @property
    def names(self) -> tuple[str, ...]:
        """The names, by code."""
        return tuple(op.name for op in self._by_code)

    def code(self, name: str) -> int:
        """The number of an operation in the columns of this process's graphs."""
        return self._code_of[name]

    def by_code(self, code: int) -> Operation:
        """The operation of a number."""
        return self._by_code[code]

    def mask(self, accept: Callable[[Operation], bool]) -> BoolArray:
        """For each code whether the operation is accepted: index it with a column of codes."""
        return np.array([accept(op) for op in self._by_code], dtype=np.bool_)

    # --- masks by code, for what operations do: index them with a column of codes ------------------------------------

    @property
    def loads(self) -> BoolArray:
        """From the global memory into a rank's own."""
        return self.mask(lambda op: op.reads_from is Space.GLOBAL and op.writes_to is Space.SCRATCH)

    @property
    def stores(self) -> BoolArray:
        """From a rank's own memory into the global one."""
        return self.mask(lambda op: op.writes_to is Space.GLOBAL)

    @property
    def copies(self) -> BoolArray:
        """From one place of a rank's own memories to another that is named, unchanged."""
        return self.mask(lambda op: op.copies)

    @property
    def sends(self) -> BoolArray:
        """Of a message."""
        return self.mask(lambda op: op.end is End.SENDS)

    @property
    def receives(self) -> BoolArray:
        """Of a message."""
        return self.mask(lambda op: op.end is End.RECEIVES)

    @property
    def waits(self) -> BoolArray:
        """For what was posted before."""
        return self.mask(lambda op: op.family is Family.MESSAGE and op.end is None)

    @property
    def markers(self) -> BoolArray:
        """Of scopes."""
        return self.mask(lambda op: op.is_marker)

    def __getitem__(self, name: str) -> Operation:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)


def operand_dtypes(operands: Sequence[Operand]) -> list[DType]:
    """The dtypes of the operands that are tensors, in order."""
    return [operand.dtype for operand in operands if isinstance(operand, Layout)]


def output_elements(operands: Sequence[Operand], result: Layout) -> Work:
    """The work of what touches each element of its result."""
    return (result.size, 0, 0)


def input_elements(operands: Sequence[Operand], result: Layout) -> Work:
    """The work of what touches each element of its one operand."""
    (source,) = operands
    assert isinstance(source, Layout)
    return (source.size, 0, 0)
