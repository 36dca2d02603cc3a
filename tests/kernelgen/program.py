"""A random program, what it runs on, and how one is drawn."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

import kernscope as ks
from kernscope import tl
from kernscope.tracer.kernel import HbmSpec

from .faults import Faults
from .machines import MACHINE_OPTIONS, SEVERAL_MEMORIES, Option
from .messages import Messages
from .values import COLS, DTYPES, SIZES, Array, Frame, Line, Tensors

__all__ = ["Instruction", "Program", "examples", "programs", "random_kernel"]

#: A name of :data:`COMPUTE`, ..., and four numbers that it makes its choices with.
Instruction = tuple[str, int, int, int, int]

MAX_DEPTH = 4
STORES_EACH = 5  # an instruction and the values it makes are stored no more often than this, on one rank
STORES_OF = {"shift_async": 10, "tangle": 8, "exchange": 6, "alone": 40, "uneven_messages": 8}  # but for these

COMPUTE = (
    *("load", "load", "load", "load_out", "load_out", "pointer", "ragged", "ragged_row", "dead_load"),
    *("fill", "arange", "empty", "empty"),
    *("unary", "unary", "binary", "binary", "binary", "where", "fma", "cast", "integers", "bits", "into", "into"),
    *("reduce", "reduce", "scan", "rearrange", "rearrange", "dot_batch"),
    *("random", "join"),
    *("dot", "dot", "dot_acc", "dot_acc", "composite", "composite"),
    *("slice", "slice", "trans", "reshape", "broadcast"),
    *("copy_to", "copy_to", "copy_to", "shift_within", "store", "store", "spill", "unspill"),
    *("take", "take", "scatter", "atomic"),
)
SCOPES = ("open", "open", "open", "close", "close")
FAULTS = ("stale_read", "stale_read", "stale_write", "stale_write", "stale_load", "unwritten_read", "unwritten_read")
MESSAGES = ("shift", "shift", "shift_async", "shift_async", "shift_into", "chain", "pair", "exchange", "meet")
UNEQUAL = ("uneven", "uneven_messages", "alone", "alone")
DEADLOCKS = ("tangle", "tangle", "tangle")


@attrs.frozen
class Program:
    """A random kernel. ``repr`` is the source that makes it again.

    ``topology`` is ``"ring"``, or ``"mesh2d"`` of ``shape`` (rows, cols; empty: one row), its ends joined or not.
    ``options`` are fields of the machine that differ from the default one's. ``grid`` programs share the ranks (0: each
    rank is one), and send no messages. With ``memories`` ranks have several, and the program says of some values where
    they lie.
    """

    instructions: tuple[Instruction, ...]
    ranks: int = 1
    topology: str = "ring"
    shape: tuple[int, ...] = ()
    joined: bool = True
    options: tuple[Option, ...] = ()
    grid: int = 0
    memories: bool = False

    @property
    def parts(self) -> int:
        """How often the kernel is called: once for each program of its grid, or else for each rank."""
        return self.grid or self.ranks

    @property
    def machine(self) -> ks.Machine:
        """The default machine, or one with several memories a rank, with the program's topology and options."""
        machine = SEVERAL_MEMORIES if self.memories else ks.load_machine("ahbm-pe")
        if self.topology == "mesh2d":
            topology = attrs.evolve(machine.topology, kind=self.topology, shape=self.shape, wraps=self.joined)
            machine = attrs.evolve(machine, topology=topology)
        return machine.override(dict(self.options))

    def trace(self, **options: Any) -> ks.Graph:
        """Its graph."""
        where = {"ranks": self.ranks, "grid": self.grid or None, "machine": self.machine}
        return ks.trace(generated, self, **self.tensors, **{**where, **options})

    @property
    def tensors(self) -> dict[str, HbmSpec]:
        """Its arguments, by name."""
        rows = self.rows
        return {
            "x": ks.hbm((24, 12), "f32"),
            "h": ks.hbm((24, 12), "f16"),
            "cube": ks.hbm((4, 6, 12), "f32"),
            "work": ks.hbm((self.parts * 16, COLS), "f32"),
            "clipped": ks.hbm((self.parts * rows, COLS - 3), "f32"),
            "shared": ks.hbm((max(1, self.exchanges) * self.parts * max(SIZES), COLS), "f32"),
            **{f"out_{dtype.short}": ks.hbm((self.parts * rows, COLS), dtype) for dtype in DTYPES},
        }

    def carry_out(self, tensors: Mapping[str, ks.HbmTensor], scope: Callable[..., Any] = tl.scratch_scope) -> None:
        """Record what a rank of it does, with scopes that ``scope`` makes."""
        own = ("x", "h", "cube", "work", "clipped", "shared")
        out = {name: tensor for name, tensor in tensors.items() if name not in own}
        interpreter = Interpreter(self, Tensors(*(tensors[name] for name in own), out))
        interpreter.scope = scope
        interpreter.run()

    def inputs(self, seed: int = 0) -> dict[str, Array]:
        """Its inputs, between -1 and 1: every tensor that is loaded."""
        rng = np.random.default_rng(seed)
        return {
            "x": rng.uniform(-1, 1, (24, 12)).astype(np.float32),
            "h": rng.uniform(-1, 1, (24, 12)).astype(np.float16),
            "cube": rng.uniform(-1, 1, (4, 6, 12)).astype(np.float32),
            "shared": np.zeros((max(1, self.exchanges) * self.parts * max(SIZES), COLS), np.float32),
            "work": rng.uniform(-1, 1, (self.parts * 16, COLS)).astype(np.float32),
        }

    @property
    def exchanges(self) -> int:
        """How often its ranks may store for their neighbours to load."""
        return sum(name in ("exchange", "meet") for name, *_ in self.instructions)

    @property
    def rows(self) -> int:
        """The rows of each output that a rank may fill."""
        return max(SIZES) * sum(STORES_OF.get(name, STORES_EACH) for name, *_ in self.instructions)

    def line(self) -> Line:
        """Where the rank that is traced stands. On a mesh the line goes along its rows, or where these are of one rank,
        along its columns."""
        if self.topology == "ring":
            place = tl.program_id(0)
            return Line(place, place, self.parts, "next", "prev", joined=True)
        _, cols = self.shape or (1, self.ranks)
        axis = 1 if cols > 1 else 0
        rank = tl.program_id(0) * cols + tl.program_id(1)
        ways = ("east", "west") if axis else ("south", "north")
        return Line(rank, tl.program_id(axis), tl.num_programs(axis), *ways, joined=self.joined)


@ks.kernel
def generated(program: Program, **tensors: ks.HbmTensor) -> None:
    """Carries a program out."""
    program.carry_out(tensors)


class Interpreter(Faults, Messages):
    """Carries out a program on one rank."""

    def __init__(self, program: Program, tensors: Tensors) -> None:
        machine = program.machine
        super().__init__(tensors, program.line(), program.rows, machine.target.slots)
        self.ranks = program.ranks
        self.spaces = tuple(machine.target.memory_names[place] for place in machine.target.scratch_memories)
        self.pending: Iterator[Instruction] = iter(program.instructions)

    def run(self) -> None:
        """All instructions, then what is left unread at the end."""
        self.block(0)
        self.keep_unread()

    def block(self, depth: int) -> None:
        """Instructions up to the end of the scope."""
        for name, a, b, c, d in self.pending:
            if name == "close":
                if depth:
                    return
            elif name == "open":
                if depth < MAX_DEPTH:
                    with self.scope("drawn" if a % 2 else None):
                        self.frames.append(Frame())
                        self.block(depth + 1)
                        self.keep_unread()
                    self.dead += self.frames.pop().values
            else:
                getattr(self, f"do_{name}")(a, b, c, d)


# --- making programs ------------------------------------------------------------------------------------------------

#: How many examples each property test runs; 0: its own small number, always the same ones.
EXAMPLES = int(os.environ.get("KERNSCOPE_EXAMPLES", "0"))


def examples(count: int) -> settings:
    """The settings of a property test: ``count`` examples, the same in every run, unless the environment variable
    ``KERNSCOPE_EXAMPLES`` asks for another number; those are drawn anew."""
    return settings(
        max_examples=EXAMPLES or count,
        derandomize=not EXAMPLES,
        deadline=None,
        phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


_NUMBER = st.integers(0, 63)


@st.composite
def programs(
    draw: st.DrawFn,
    *,
    ranks: int = 1,
    faults: bool = False,
    deadlocks: bool = False,
    max_size: int = 40,
    topology: str = "ring",
    machines: bool = True,
    grid: int = 0,
    memories: bool = False,
) -> Program:
    """Random programs of at most ``max_size`` instructions, with options of the machine unless ``machines`` says no."""
    names = _names(1 if grid else ranks, faults, deadlocks) + ("move", "move", "space") * memories
    instruction = st.tuples(st.sampled_from(names), _NUMBER, _NUMBER, _NUMBER, _NUMBER)
    instructions = draw(st.lists(instruction, min_size=1, max_size=max_size))
    shape: tuple[int, ...] = ()
    joined = True
    if topology == "mesh2d":
        shape = draw(st.sampled_from([(), *((n, ranks // n) for n in range(1, ranks + 1) if ranks % n == 0)]))
        joined = draw(st.sampled_from([True, True, False]))
    options = st.lists(st.sampled_from(MACHINE_OPTIONS), max_size=4, unique_by=lambda option: option[0])
    chosen = tuple(draw(options)) if machines else ()
    return Program(tuple(instructions), ranks, topology, shape, joined, chosen, grid, memories)


def random_kernel(
    seed: int,
    *,
    ranks: int = 1,
    faults: bool = False,
    deadlocks: bool = False,
    size: int = 40,
    topology: str = "ring",
    machines: bool = False,
    memories: bool = False,
) -> Program:
    """The random program of a seed, with ``size`` instructions: for runs too large for hypothesis."""
    rng = random.Random(seed)
    names = _names(ranks, faults, deadlocks) + ("move", "move", "space") * memories
    made = [(rng.choice(names), *(rng.randrange(64) for _ in range(4))) for _ in range(size)]
    options = dict(rng.choice(MACHINE_OPTIONS) for _ in range(rng.randrange(5) if machines else 0))
    instructions = tuple((name, a, b, c, d) for name, a, b, c, d in made)
    return Program(instructions, ranks, topology, options=tuple(options.items()), memories=memories)


def _names(ranks: int, faults: bool, deadlocks: bool) -> tuple[str, ...]:
    names = COMPUTE + SCOPES * 2
    if faults:
        names += FAULTS * 2
    if ranks > 1:
        names += MESSAGES * 2 + UNEQUAL
    if deadlocks:
        names += DEADLOCKS * 3
    return names
