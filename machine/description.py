"""The machine: what a processing element's engines, CPU and links cost, and what of it a graph depends on.

A machine is data: a TOML file, or a preset (which is one, too). Numbers are exact: decimals become rationals, so that
21 cycles at 1.4 GHz are 15,000 ps and not one more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path

import attrs

from ..ir.errors import MachineError, OptionError, did_you_mean, shown
from ..ir.memories import HBM, TCM
from ..ir.ops import Kind
from ..ir.target import OPPOSITE, Target
from .parts import Above0, Cpu, Dma, Engine, Gemm, Link, Math, Scratch, Topology, Toward
from .toml_form import (
    SEE_VALID,
    known_paths,
    listed,
    overlaid,
    plain,
    read_toml,
    replace,
    structure,
    write_toml,
)

__all__ = ["DEFAULT_MACHINE", "Machine", "load_machine", "machine_names", "parse_machine"]

#: The founding accelerator's PE.
DEFAULT_MACHINE = "ahbm-pe"
_PRESETS = Path(__file__).with_name("presets")


@attrs.frozen(slots=False)
class Machine:
    """A machine description. Hashable and comparable by value; make one with :func:`load_machine`."""

    name: str
    clock_ghz: Above0
    scratch: Scratch
    dma_read: Dma
    dma_write: Dma
    gemm: Gemm
    math: Math
    link: Link
    cpu: Cpu = attrs.field(factory=Cpu)
    topology: Topology = attrs.field(factory=Topology)

    @cached_property
    def target(self) -> Target:
        """What of this machine a graph depends on."""
        return Target.of_scratch(
            self.scratch.bytes,
            self.scratch.align,
            topology=self.topology.kind,
            shape=self.topology.shape,
            wraps=self.topology.wraps,
            slots=self.link.slots,
        )

    @property
    def cycle_ps(self) -> Fraction:
        """One clock cycle, in picoseconds (exact)."""
        return 1000 / self.clock_ghz

    @cached_property
    def engines(self) -> tuple[Engine, ...]:
        """The engines of a rank, in the order in which they are numbered; the link, which stands for one of each
        direction, last."""
        own, shared = (TCM,), (HBM,)
        return (
            Engine("dma_read", Kind.TRANSFER, self.dma_read.channels, shared, own, self.dma_read),
            Engine("dma_write", Kind.TRANSFER, self.dma_write.channels, own, shared, self.dma_write),
            Engine("gemm", Kind.MATMUL, 1, own, own, self.gemm),
            Engine("math", Kind.ELEMENTWISE, 1, own, own, self.math),
            Engine("link", Kind.LINK, 1, own, own, self.link),
        )

    def override(self, values: Mapping[str, str]) -> Machine:
        """The machine with some fields replaced, as ``--set gemm.rows=128`` does: ``{"gemm.rows": "128"}``.

        A value is TOML, or a bare string. The result's name says what was replaced. Raises ``OptionError`` for an
        unknown path (with the nearest) and for a value that the field cannot have.
        """
        if not values:
            return self
        paths = tuple(known_paths(Machine))
        data = plain(self)
        for path, text in values.items():
            if path not in paths:
                raise OptionError(f"no machine field {path!r}", help=did_you_mean(path, paths, what="fields"))
            replace(Machine, data, path, text)
        replaced, mistakes = _checked(data)
        if replaced is None:
            raise OptionError(listed("--set", mistakes), help=SEE_VALID)
        if "name" in values:
            return replaced
        changes = ", ".join(f"{path}={text}" for path, text in values.items())
        return attrs.evolve(replaced, name=f"{self.name} with {changes}")

    def to_toml(self) -> str:
        """The description as TOML; reading it gives an equal machine."""
        return write_toml(self)


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
    ``base``, a preset, if it names one. Raises ``MachineError``."""
    machine, mistakes = _checked(_upon_base(read_toml(source, file), file, ()))
    if machine is None:
        raise MachineError(listed(file, mistakes), help=SEE_VALID)
    return machine


def _upon_base(data: Mapping[str, object], file: str, above: tuple[str, ...]) -> dict[str, object]:
    """The tables of a description with those of its base below them. Bases are presets: a description opens no file
    that it names."""
    own = dict(data)
    base = own.pop("base", None)
    if base is None:
        return own
    names = machine_names()
    if not isinstance(base, str) or base not in names or base in above:
        others = [name for name in names if name not in above]
        raise MachineError(
            f"{file}: base: {'stands on itself' if base in above else f'no preset {shown(base)}'}",
            help=did_you_mean(str(base), others, what="presets"),
        )
    below = _upon_base(read_toml(_preset_text(base), f"{base}.toml"), f"{base}.toml", (*above, base))
    return overlaid(below, own)


def _preset_text(name: str) -> bytes:
    return (_PRESETS / f"{name}.toml").read_bytes()


def _checked(data: Mapping[str, object]) -> tuple[Machine | None, list[tuple[str, str]]]:
    machine, mistakes = structure(Machine, data)
    if machine is not None:
        mistakes = list(_topology_mistakes(machine))
    return (None, mistakes) if mistakes else (machine, [])


def _topology_mistakes(machine: Machine) -> Iterator[tuple[str, str]]:
    topology = machine.topology
    for direction in sorted(OPPOSITE):
        if getattr(machine.link, direction) != Toward() and direction not in machine.target.directions:
            yield f"link.{direction}", f"a {topology.kind!r} has {', '.join(machine.target.directions)}"
    if topology.kind not in ("ring", "mesh2d"):
        yield "topology.kind", f"unknown topology {topology.kind!r}; {did_you_mean(topology.kind, ('ring', 'mesh2d'))}"
    elif topology.kind == "ring" and topology.shape:
        yield "topology.shape", 'only a "mesh2d" has a shape'
    elif topology.kind == "ring" and topology.wraps:
        yield "topology.wraps", 'a "ring" is joined anyway; only a "mesh2d" can wrap'
    elif topology.shape and len(topology.shape) != 2:
        yield "topology.shape", f"must be [rows, cols], not {list(topology.shape)}"
