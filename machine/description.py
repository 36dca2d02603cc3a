"""The machine: what a processing element's engines, CPU and links cost, and what of it a graph depends on.

A machine is data: a TOML file, or a preset (which is one, too). Numbers are exact: decimals become rationals, so that
21 cycles at 1.4 GHz are 15,000 ps and not one more.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path

import attrs

from ..ir.errors import MachineError, OptionError, did_you_mean, shown
from ..ir.memories import MOST_PARTITIONS, Memory
from ..ir.ops import OPERATIONS, Kind
from ..ir.target import OPPOSITE, Reach, Target
from .first_format import first_path, is_first, second_path, without_first
from .parts import (
    ISSUE_CYCLES,
    NOTHING_LISTED,
    TAKEABLE,
    Above0,
    Cpu,
    Elementwise,
    Engine,
    EnginePart,
    Link,
    Listed,
    MemoryPart,
    Share,
    Topology,
    Toward,
    Transfer,
)
from .toml_form import (
    SEE_VALID,
    comments_of,
    known_paths,
    listed,
    overlaid,
    plain,
    read_toml,
    replace,
    structure,
    write_toml,
)

__all__ = ["DEFAULT_MACHINE", "Machine", "load_machine", "machine_comments", "machine_names", "parse_machine"]

#: The founding accelerator's PE.
DEFAULT_MACHINE = "ahbm-pe"
_PRESETS = Path(__file__).with_name("presets")


@attrs.frozen(slots=False)
class Machine:
    """A machine description. Hashable and comparable by value; make one with :func:`load_machine`."""

    name: str
    clock_ghz: Above0
    memory: Listed[str, MemoryPart]
    engine: Listed[str, EnginePart]
    place: Listed[str, str] = NOTHING_LISTED
    strict_spaces: bool = False
    sustained: Share = Fraction(1)
    cpu: Cpu = attrs.field(factory=Cpu)
    topology: Topology = attrs.field(factory=Topology)

    @cached_property
    def target(self) -> Target:
        """What of this machine a graph depends on."""
        memories = {name: part for name, part in self.memory.items() if part.scope != "level"}
        links = [part.slots for part in self.engine.values() if isinstance(part, Link)]
        own = [name for name, part in memories.items() if part.scope == "rank"]
        return Target(
            memories=tuple(
                Memory(name, part.bytes or 0, part.align, part.scope == "global", part.partitions or 0)
                for name, part in sorted(memories.items(), key=lambda item: item[1].scope != "global")
            ),
            results=self.place.get("default", own[0]),
            reaches=tuple(Reach(e.kind, e.reads, e.writes, e.ops, e.operands) for e in self.engines),
            places=tuple((key, name) for key, name in self.place.items() if key != "default"),
            strict_spaces=self.strict_spaces,
            topology=self.topology.kind,
            shape=self.topology.shape,
            wraps=self.topology.wraps,
            slots=links[0] if links else 1,
        )

    @property
    def cycle_ps(self) -> Fraction:
        """One clock cycle, in picoseconds (exact)."""
        return 1000 / self.clock_ghz

    def engine_cycle_ps(self, part: EnginePart) -> Fraction:
        """One clock cycle of an engine, in picoseconds: of its own clock, if it has one, as far as that is
        sustained."""
        return 1000 / ((part.clock_ghz or self.clock_ghz) * self.sustained)

    @cached_property
    def engines(self) -> tuple[Engine, ...]:
        """The engines of a rank, in the order in which they are listed; a link stands for one of each direction."""
        return tuple(
            Engine(name, part.of_kind, part.channels, part.reads, part.writes, part, part.ops, part.operands)
            for name, part in self.engine.items()
        )

    @cached_property
    def link(self) -> Link | None:
        """The link to the neighbours, if there is one."""
        return next((part for part in self.engine.values() if isinstance(part, Link)), None)

    @cached_property
    def global_memory(self) -> MemoryPart:
        """The memory where tensors lie."""
        return next(part for part in self.memory.values() if part.scope == "global")

    @cached_property
    def level(self) -> MemoryPart | None:
        """The level in front of the global memory that all ranks share, if there is one."""
        return next((part for part in self.memory.values() if part.scope == "level"), None)

    def override(self, values: Mapping[str, str]) -> Machine:
        """The machine with some fields replaced, as ``--set gemm.rows=128`` does: ``{"gemm.rows": "128"}``.

        A value is TOML, or a bare string. The result's name says what was replaced. Raises ``OptionError`` for an
        unknown path (with the nearest) and for a value that the field cannot have.
        """
        if not values:
            return self
        names = tuple(self.engine)
        paths = tuple(known_paths(self, names))
        known = {**{path: path for path in paths}, **self._short_paths(paths)}
        data = plain(self)
        for path, text in values.items():
            if path not in known:
                raise OptionError(f"no machine field {path!r}", help=did_you_mean(path, tuple(known), what="fields"))
            replace(data, known[path], text)
        replaced, mistakes = _checked(data)
        if replaced is None:
            called = {full: path for path, full in known.items() if path in values}
            told = [(called.get(path, path), text) for path, text in mistakes]
            raise OptionError(listed("--set", told), help=SEE_VALID)
        if "name" in values:
            return replaced
        changes = ", ".join(f"{path}={text}" for path, text in values.items())
        return attrs.evolve(replaced, name=f"{self.name} with {changes}")

    @property
    def field_names(self) -> tuple[str, ...]:
        """Whatever :meth:`override` takes, short names included."""
        paths = tuple(known_paths(self, tuple(self.engine)))
        return tuple(dict.fromkeys((*self._short_paths(paths), *paths)))

    def full_path(self, path: str) -> str:
        """A path of the description for what a field may be called besides."""
        return self._short_paths(tuple(known_paths(self, tuple(self.engine)))).get(path, path)

    def _short_paths(self, paths: tuple[str, ...]) -> dict[str, str]:
        """What fields may be called besides: without ``engine.`` or ``memory.``, and as the first format did."""
        short = {path.split(".", 1)[1]: path for path in paths if path.startswith(("engine.", "memory."))}
        first = {
            path: second_path(path, self.engine, self.memory, self.target.results)
            for path in ("scratch.bytes", "scratch.align", *(f"{name}.channels" for name in self.engine))
        }
        return {**first, **short}

    def same_as(self, other: Machine, told: Mapping[str, str]) -> dict[str, str]:
        """What is told of paths of another machine, as far as this one is the same there."""
        mine, theirs = plain(self), plain(other)
        return {path: text for path, text in told.items() if _at(mine, path) == _at(theirs, path)}

    def to_toml(self, comments: Mapping[str, str] | None = None) -> str:
        """The description as TOML, with ``comments`` by path; reading it gives an equal machine."""
        return write_toml(self, comments or {})


@cache
def machine_names() -> tuple[str, ...]:
    """The presets' names, the default first, the rest by name."""
    names = sorted(path.stem for path in _PRESETS.glob("*.toml"))
    return (DEFAULT_MACHINE, *(name for name in names if name != DEFAULT_MACHINE))


def load_machine(machine: Machine | str | os.PathLike[str] = DEFAULT_MACHINE) -> Machine:
    """A machine from a preset's name or a TOML file; a :class:`Machine` is handed through.

    A string that ends in ``.toml`` or holds a path separator is a file. Raises ``MachineError`` for an unknown name
    (naming the nearest), a file that cannot be read, and a description with mistakes (all of them, each with its path).
    """
    if isinstance(machine, Machine):
        return machine
    if not isinstance(machine, str | os.PathLike):
        raise MachineError(f"no machine {shown(machine)}", help="pass a preset's name, a TOML file's path or a Machine")
    text = os.fsdecode(machine)
    if isinstance(machine, str) and not text.endswith(".toml") and os.path.basename(text) == text:
        return _preset(text)
    try:
        source = Path(text).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise MachineError(
            f"cannot read machine {text}: {reason}", help="pass a preset's name or a TOML file"
        ) from error
    return parse_machine(source, text)


@cache
def _preset(name: str) -> Machine:
    if name not in machine_names():
        nearest = did_you_mean(name, machine_names(), what="presets")
        raise MachineError(f"no machine {name!r}", help=f"{nearest} (a file's name ends in .toml)")
    return parse_machine(_preset_text(name), f"{name}.toml")


def parse_machine(source: bytes | str, file: str) -> Machine:
    """The machine that a TOML text describes; ``file`` is how errors call it. What the text does not say is that of its
    ``base``, a preset, if it names one. A file of the first format is turned into the second. Raises
    ``MachineError``."""
    data = read_toml(source, file)
    below = _base_of(data, file, ())
    own = {key: value for key, value in data.items() if key != "base"}
    early: list[tuple[str, str]] = []
    first = is_first(own)
    if first:
        own, early = without_first(own, whole=below is None)
    machine, mistakes = _checked(overlaid(below, own) if below is not None else own)
    if machine is None or early:
        if first:
            spoken = {path for path, _ in early}
            mistakes = [(first_path(path), text) for path, text in mistakes]
            mistakes = sorted([m for m in mistakes if m[0] not in spoken] + early, key=_first_order)
        raise MachineError(listed(file, mistakes), help=SEE_VALID)
    return machine


def _first_order(mistake: tuple[str, str]) -> tuple[bool, int]:
    order = ("name", "clock_ghz", "scratch", "dma_read", "dma_write", "gemm", "math", "link", "cpu", "topology")
    head = mistake[0].partition(".")[0]
    return "." not in mistake[0] and "unknown key" in mistake[1], order.index(head) if head in order else len(order)


def _base_of(data: Mapping[str, object], file: str, above: tuple[str, ...]) -> dict[str, object] | None:
    """The tables that a description stands on, in the second format, with those of its base below them; None where it
    stands on nothing. Bases are presets: a description opens no file that it names."""
    if "base" not in data:
        return None
    base, names = data["base"], machine_names()
    if not isinstance(base, str) or base not in names or base in above:
        others = [name for name in names if name not in above]
        raise MachineError(
            f"{file}: base: {'stands on itself' if base in above else f'no preset {shown(base)}'}",
            help=did_you_mean(str(base), others, what="presets"),
        )
    own = read_toml(_preset_text(base), f"{base}.toml")
    below = _base_of(own, f"{base}.toml", (*above, base))
    own.pop("base", None)
    return own if below is None else overlaid(below, own)


def _preset_text(name: str) -> bytes:
    return (_PRESETS / f"{name}.toml").read_bytes()


def machine_comments(machine: str | os.PathLike[str]) -> dict[str, str]:
    """What a preset, or a file that was read as a machine, says behind its numbers, by path of the second format: where
    each is from. What it stands on is asked, too."""
    text = os.fsdecode(machine)
    is_file = not isinstance(machine, str) or text.endswith(".toml") or os.path.basename(text) != text
    return _comments(Path(text).read_bytes() if is_file else _preset_text(text), text)


def _comments(source: bytes, file: str) -> dict[str, str]:
    data = read_toml(source, file)
    base = data.get("base")
    below = _comments(_preset_text(base), base) if isinstance(base, str) else {}
    own = comments_of(source.decode("utf-8").removeprefix("\ufeff"))
    if is_first(data):
        machine = parse_machine(source, file)
        own = {second_path(p, machine.engine, machine.memory, machine.target.results): c for p, c in own.items()}
    return {**below, **own}


def _at(table: object, path: str) -> object:
    """What stands at a path; of a table only that there is one."""
    for key in path.split("."):
        table = table.get(key) if isinstance(table, Mapping) else None
    return True if isinstance(table, Mapping) else table


# --- what must hold between the parts ---------------------------------------------------------------------------------


def _checked(data: Mapping[str, object]) -> tuple[Machine | None, list[tuple[str, str]]]:
    machine, mistakes = structure(Machine, data)
    if machine is not None:
        mistakes = [*_memory_mistakes(machine)]
        mistakes = mistakes or [*_engine_mistakes(machine), *_place_mistakes(machine), *_topology_mistakes(machine)]
    return (None, mistakes) if mistakes else (machine, [])


def _memory_mistakes(machine: Machine) -> Iterator[tuple[str, str]]:
    scopes = ("rank", "global", "level")
    for name, part in machine.memory.items():
        path = f"memory.{name}"
        if part.scope not in scopes:
            yield f"{path}.scope", f"unknown scope {part.scope!r}; {did_you_mean(part.scope, scopes, what='scopes')}"
        elif part.scope == "global" and part.bytes is not None:
            yield f"{path}.bytes", "the global memory takes whatever tensors there are"
        elif part.scope != "global" and part.bytes is None:
            yield f"{path}.bytes", "is missing"
        elif part.scope == "rank" and part.bytes_per_ns is not None:
            yield f"{path}.bytes_per_ns", "only what ranks share has a rate; engines have their own"
        elif part.scope == "level" and part.bytes_per_ns is None:
            yield f"{path}.bytes_per_ns", "is missing"
        if (part.partitions or 0) > MOST_PARTITIONS:
            yield f"{path}.partitions", f"must be at most {MOST_PARTITIONS:,}"
        elif part.partitions and part.bytes and part.bytes % part.partitions:
            yield f"{path}.partitions", f"must divide the bytes, {part.bytes}"
        if part.scope != "rank" and part.partitions is not None:
            yield f"{path}.partitions", 'only a memory of scope "rank" has partitions'
    found = [part.scope for part in machine.memory.values()]
    if found.count("global") != 1:
        yield "memory", f'exactly one is of scope "global", not {found.count("global")}'
    if "rank" not in found:
        yield "memory", 'at least one is of scope "rank"'
    if found.count("level") > 1:
        yield "memory", f'at most one is of scope "level", not {found.count("level")}'
    if found.count("rank") > 1 and "default" not in machine.place:
        yield "place.default", "is missing: where do results go?"


def _engine_mistakes(machine: Machine) -> Iterator[tuple[str, str]]:
    known = tuple(name for name, part in machine.memory.items() if part.scope != "level")
    own = tuple(name for name in known if machine.memory[name].scope == "rank")
    links = [name for name, part in machine.engine.items() if isinstance(part, Link)]
    for name in links[1:]:
        yield f"engine.{name}", f"a rank has one link, and that is {links[0]}"
    for name, part in machine.engine.items():
        path = f"engine.{name}"
        for key in ("reads", "writes"):
            for memory in getattr(part, key):
                if memory not in known:
                    yield f"{path}.{key}", f"no memory {memory!r}; {did_you_mean(memory, known, what='memories')}"
        for memory in dict.fromkeys(itertools.chain(*part.operands)):
            if memory not in part.reads:
                yield f"{path}.operands", f"{memory!r} is not among what it reads; {did_you_mean(memory, part.reads)}"
        if not all(part.operands):
            yield f"{path}.operands", "an operand that is read from no memory"
        if not part.reads or not part.writes:
            yield path, "reads no memory" if not part.reads else "writes no memory"
        for op in part.ops:
            if op not in TAKEABLE:
                yield f"{path}.ops", f"no operation {op!r}; {did_you_mean(op, TAKEABLE, what='operations')}"
        if isinstance(part, Transfer) and part.lanes_of_work % part.spread:
            yield f"{path}.spread", f"must divide lanes_of_work, {part.lanes_of_work}"
        if isinstance(part, Link) and part.lanes_of_work != 1:
            yield f"{path}.lanes_of_work", "a link takes one message at a time"
        for memory in part.both_in if isinstance(part, Elementwise) else ():
            if memory not in own:
                yield f"{path}.both_in.{memory}", f"no memory; {did_you_mean(memory, own, what='memories')}"
    keys = ("default", *ISSUE_CYCLES.keys, *machine.engine)
    for key, _ in machine.cpu.issue_cycles.listed:
        if key not in keys:
            yield f"cpu.issue_cycles.{key}", f"unknown key; {did_you_mean(key, keys, what='known')}"


def _place_mistakes(machine: Machine) -> Iterator[tuple[str, str]]:
    own = tuple(name for name, part in machine.memory.items() if part.scope == "rank")
    takers = tuple(op.name for op in OPERATIONS.values() if not op.is_marker)
    kinds = tuple(kind.value for kind in Kind if kind is not Kind.NONE)
    known = ("default", *takers, *kinds)
    for key, memory in machine.place.items():
        if key not in known:
            yield f"place.{key}", f"unknown key; {did_you_mean(key, known, what='known')}"
        elif memory not in own:
            yield f"place.{key}", f"no memory {memory!r}; {did_you_mean(memory, own, what='memories')}"


def _topology_mistakes(machine: Machine) -> Iterator[tuple[str, str]]:
    topology = machine.topology
    link, name = machine.link, next((n for n, part in machine.engine.items() if isinstance(part, Link)), "")
    for direction in sorted(OPPOSITE) if link is not None else ():
        if getattr(link, direction) != Toward() and direction not in machine.target.directions:
            yield f"engine.{name}.{direction}", f"a {topology.kind!r} has {', '.join(machine.target.directions)}"
    if topology.kind not in ("ring", "mesh2d"):
        yield "topology.kind", f"unknown topology {topology.kind!r}; {did_you_mean(topology.kind, ('ring', 'mesh2d'))}"
    elif topology.kind == "ring" and topology.shape:
        yield "topology.shape", 'only a "mesh2d" has a shape'
    elif topology.kind == "ring" and topology.wraps:
        yield "topology.wraps", 'a "ring" is joined anyway; only a "mesh2d" can wrap'
    elif topology.shape and len(topology.shape) != 2:
        yield "topology.shape", f"must be [rows, cols], not {list(topology.shape)}"
