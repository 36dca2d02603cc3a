"""What an operation is: one declaration holds its name, effects, engine, work, shape rule, evaluation and
documentation.

The recorder and the verifier call the same ``rule``; the machine's latency reads the same ``work``; the numpy backend
calls the same ``evaluate``; the kernel language takes its functions, operators and docstrings from here.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from ..dtypes import DType
from ..layout import Layout, Shape

__all__ = [
    "NO_WORK",
    "End",
    "Engine",
    "Family",
    "Operand",
    "Operation",
    "OperationTable",
    "Scalar",
    "Space",
    "Work",
    "WorkKind",
    "operand_dtypes",
]

Scalar = bool | int | float
Operand = Layout | Scalar
Work = tuple[int, int, int]
NO_WORK: Work = (0, 0, 0)


class Engine(enum.StrEnum):
    """Which engine of a rank carries an operation out. ``LINK`` stands for the sender's link of a direction."""

    DMA_READ = "dma_read"
    DMA_WRITE = "dma_write"
    GEMM = "gemm"
    MATH = "math"
    LINK = "link"
    NONE = "none"


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
    CONTRACTION = "contraction"
    MESSAGE = "message"
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


_WORK_OF = {
    Engine.DMA_READ: WorkKind.BYTES,
    Engine.DMA_WRITE: WorkKind.BYTES,
    Engine.LINK: WorkKind.BYTES,
    Engine.GEMM: WorkKind.MNK,
    Engine.MATH: WorkKind.ELEMENTS,
    Engine.NONE: WorkKind.NOTHING,
}


@attrs.frozen(eq=False)
class Operation:
    """One operation of the graph.

    ``rule(operands, **static)`` gives the result's shape and dtype and raises ``ShapeError`` or ``DTypeError``.
    ``evaluate(*operands, **static)`` computes on numpy arrays of the operands' own dtypes, in program meaning; it gets
    ``result`` (the dtype of the result) among the static values and returns an array of exactly that dtype.
    ``work(operands, result)`` counts what has to be done, with no machine in it.
    Its operands lie in ``reads_from``, its result in ``writes_to``; ``end`` says which end of a message it is, if any.
    ``log`` is the log entry ``kind/name``, empty for a node without one. ``asynchronous`` operations let the CPU go on
    after their issue under the ``lazy`` policy. ``public`` operations are functions of ``tl`` under their own name (the
    others are Python operators, or have functions of their own there).
    """

    name: str
    family: Family
    engine: Engine
    log: str
    rule: Callable[..., tuple[Shape, DType]]
    evaluate: Callable[..., Any]
    work: Callable[[Sequence[Operand], Layout], Work]
    doc: str
    reads_from: Space = Space.SCRATCH
    writes_to: Space = Space.SCRATCH
    end: End | None = None
    asynchronous: bool = False
    public: bool = True

    @property
    def work_kind(self) -> WorkKind:
        """The meaning of the three work numbers."""
        return _WORK_OF[self.engine]


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

    def mask(self, accept: Callable[[Operation], bool]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For each code whether the operation is accepted: index it with a column of codes."""
        return np.array([accept(op) for op in self._by_code], dtype=np.bool_)

    def __getitem__(self, name: str) -> Operation:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)


def operand_dtypes(operands: Sequence[Operand]) -> list[DType]:
    """The dtypes of the operands that are tensors, in order."""
    return [operand.dtype for operand in operands if isinstance(operand, Layout)]
