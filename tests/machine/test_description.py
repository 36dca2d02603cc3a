"""Machine descriptions: presets, strict reading, exact decimals, overrides."""

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import pytest

import kernscope as ks
from kernscope import MachineError, OptionError, tl
from kernscope.ir.dtypes import float32
from kernscope.ir.ops import OPERATIONS
from kernscope.ir.target import Target
from kernscope.machine.description import (
    DEFAULT_MACHINE,
    Machine,
    load_machine,
    machine_names,
    parse_machine,
)
from kernscope.machine.engines import node_engines
from kernscope.machine.latency import duration_ps
from kernscope.machine.parts import Elementwise, Listed, Matmul, Transfer

PRESETS = Path(__file__).parents[2] / "machine" / "presets"
SOURCE = (PRESETS / "ahbm-pe.toml").read_text(encoding="utf-8")
#: The same machine in the first format.
FIRST = (Path(__file__).parent / "first_format.toml").read_text(encoding="utf-8")


def changed(before: str, after: str) -> str:
    """The default preset, in the first format, with one line replaced."""
    assert FIRST.count(before) == 1, before
    return FIRST.replace(before, after)


def mistakes_of(source: str) -> list[str]:
    """The lines of the error that a description raises."""
    with pytest.raises(MachineError) as caught:
        parse_machine(source, "m.toml")
    assert caught.value.help
    return caught.value.message.splitlines()


def test_the_default_preset() -> None:
    """``ahbm-pe`` holds the numbers of the design."""
    machine = load_machine()
    assert machine.name == DEFAULT_MACHINE == machine_names()[0] == "ahbm-pe"
    assert (machine.clock_ghz, machine.memory["tcm"].bytes, machine.memory["tcm"].align) == (1, 1 << 20, 16)
    for name in ("dma_read", "dma_write"):
        port = machine.engine[name]
        assert isinstance(port, Transfer)
        assert (port.channels, port.latency_ns, port.bytes_per_ns) == (1, 100, 128)
    gemm, math, link = machine.engine["gemm"], machine.engine["math"], machine.link
    assert isinstance(gemm, Matmul) and isinstance(math, Elementwise) and link is not None
    assert (gemm.rows, gemm.cols, gemm.startup_cycles) == (64, 64, 16)
    assert (math.lanes, math.startup_cycles) == (256, 4)
    assert [math.cycles.of(op) for op in ("add", "exp", "div", "erf", "softmax")] == [1, 4, 4, 8, 8]
    assert (link.latency_ns, link.bytes_per_ns, link.slots) == (50, 64, 2)
    assert machine.cpu.issue_cycles.of("load", "dma_read") == 0
    assert machine.target == Target.of_scratch(1 << 20, 16, topology="ring", shape=(), wraps=False, slots=2)


@pytest.mark.parametrize("name", machine_names())
def test_presets(name: str) -> None:
    """Every preset loads under its file's name, says where each number is from, and survives being written and read."""
    machine = load_machine(name)
    assert machine.name == name
    assert parse_machine(machine.to_toml(), "again") == machine
    assert hash(machine) == hash(parse_machine(machine.to_toml(), "again"))
    section_says = False
    for line in (PRESETS / f"{name}.toml").read_text(encoding="utf-8").splitlines():
        number = re.match(r"\w+ = [\d.]+", line)
        section_says = "as all below" in line or (section_says and bool(number))
        assert not number or section_says or re.search(r"# .*(assumed|record \d{4}|\b\w+: )", line), line


def test_a_file_and_a_machine(tmp_path: Path) -> None:
    """A path loads a file (also with a byte order mark); a Machine is handed through."""
    path = tmp_path / "mine.toml"
    path.write_text(changed('name = "ahbm-pe"', 'name = "mine \\"quoted\\" \\u00e9"'), encoding="utf-8-sig")
    machine = load_machine(path)
    assert machine.name == 'mine "quoted" é'
    assert load_machine(str(path)) == machine
    assert load_machine(machine) is machine
    assert parse_machine(machine.to_toml(), "again") == machine


def test_unknown_names_and_files(tmp_path: Path) -> None:
    """A misspelt preset names the nearest; a missing file, and a folder, say so."""
    with pytest.raises(MachineError, match=r"no machine 'ahbm-pee'\n  help: did you mean 'ahbm-pe'\?"):
        load_machine("ahbm-pee")
    with pytest.raises(MachineError, match=r"cannot read machine .*none\.toml: No such file"):
        load_machine(tmp_path / "none.toml")
    with pytest.raises(MachineError, match="cannot read machine"):
        load_machine(tmp_path)


def test_decimals_are_exact() -> None:
    """1.4 GHz is 7/5 and not the nearest binary float, so that 21 cycles are 15,000 ps."""
    machine = parse_machine(changed("clock_ghz = 1.0 ", "clock_ghz = 1.4 "), "m.toml")
    assert machine.clock_ghz == Fraction(7, 5)
    assert 21 * machine.cycle_ps == 15_000


@pytest.mark.parametrize(
    ("before", "after", "mistake"),
    [
        ("rows = 64  ", "rows = 0  ", "gemm.rows: must be an integer above 0, not 0"),
        ("rows = 64  ", "rows = -1  ", "gemm.rows: must be an integer above 0, not -1"),
        ("rows = 64  ", "rows = 64.0  ", "gemm.rows: must be an integer above 0, not 64"),
        ("rows = 64  ", "rows = true  ", "gemm.rows: must be an integer above 0, not true"),
        ("rows = 64  ", 'rows = "64"  ', 'gemm.rows: must be an integer above 0, not "64"'),
        ("rows = 64  ", "rows = [64]  ", "gemm.rows: must be an integer above 0, not [64]"),
        ("rows = 64  ", "row = 64  ", "gemm.rows: is missing"),
        ("rows = 64  ", "rows = 64\nrwos = 1  ", "gemm.rwos: unknown key; did you mean 'rows'?"),
        ("clock_ghz = 1.0 ", "clock_ghz = nan ", "clock_ghz: must be a number above 0 (below 1e30), not nan"),
        ("clock_ghz = 1.0 ", "clock_ghz = inf ", "clock_ghz: must be a number above 0 (below 1e30), not inf"),
        ("clock_ghz = 1.0 ", "clock_ghz = 1e999999999 ", "clock_ghz: must be a number above 0 (below 1e30), not inf"),
        ("clock_ghz = 1.0 ", "clock_ghz = 0.0 ", "clock_ghz: must be a number above 0, not 0"),
        ("startup_cycles = 16", "startup_cycles = -0.5", "gemm.startup_cycles: must be a number, 0 or more, not -0.5"),
        ('name = "ahbm-pe"', "name = 7", "name: must be a string, not 7"),
        ('name = "ahbm-pe"', 'name = ""', 'name: must be a string, not ""'),
        ("default = 0 ", "loads = 1\ndefault = 0 ", "cpu.issue_cycles.loads: unknown key; did you mean 'load'?"),
        ("default = 0 ", "load = 1 ", "cpu.issue_cycles.default: is missing"),
        ("exp = 4 ", "cast = 4 ", "math.cycles.cast: always costs the default; it cannot be listed"),
        ("exp = 4 ", "dot = 4 ", "math.cycles.dot: unknown key; did you mean 'not'?"),
        ('kind = "ring" ', 'kind = "mesh2d"\nshape = 4', "topology.shape: must be a list, not 4"),
        ('kind = "ring" ', 'kind = "mesh2d"\nshape = {x = 4}', "topology.shape: must be a list, not a table"),
        (
            "startup_cycles = 16",
            "startup_cycles = {x = 1}",
            "gemm.startup_cycles: must be a number, 0 or more, not a table",
        ),
        ("default = 1.0 ", "default = 1.0\nf16 = 2\nfloat16 = 2", "gemm.rate.float16: is float16 again"),
        ("default = 1.0 ", "default = 1.0\nf16 = 0", "gemm.rate.f16: must be a number above 0, not 0"),
        ('kind = "ring" ', 'kind = "rnig" ', "topology.kind: unknown topology 'rnig'; did you mean 'ring'?"),
        ('kind = "ring" ', 'kind = "ring"\nshape = [2, 2]', 'topology.shape: only a "mesh2d" has a shape'),
        (
            'kind = "ring" ',
            'kind = "ring"\nwraps = true',
            'topology.wraps: a "ring" is joined anyway; only a "mesh2d" can wrap',
        ),
        ('kind = "ring" ', 'kind = "mesh2d"\nshape = [2]', "topology.shape: must be [rows, cols], not [2]"),
        ('kind = "ring" ', 'kind = "mesh2d"\nshape = [2, 0]', "topology.shape: must be an integer above 0, not 0"),
        ('kind = "ring" ', 'kind = "mesh2d"\nwraps = 1', "topology.wraps: must be true or false, not 1"),
    ],
)
def test_a_mistake_is_named_with_its_path(before: str, after: str, mistake: str) -> None:
    """One mistake is one line: the file, the path, what is wrong with which value."""
    assert f"m.toml: {mistake}" in mistakes_of(changed(before, after))


def test_what_cannot_be_listed_is_not_proposed() -> None:
    """Copies, fills and casts always cost the default: the known keys are the others."""
    (said,) = mistakes_of(changed("exp = 4 ", "nothing_like_it = 4 "))
    known = said.partition("known: ")[2].split(", ")
    assert {"default", "add", "exp", "simple", "scan"} <= set(known)
    assert not {"copy_to", "fill", "cast", "load"} & set(known)


def test_all_mistakes_at_once() -> None:
    """Mistakes in different sections are reported together, in the order of the fields."""
    source = changed("rows = 64  ", "rows = 0  ").replace("slots = 2", "slots = -2").replace("[scratch]", "[scrtach]")
    assert mistakes_of(source) == [
        "m.toml: scratch: is missing",
        "m.toml: gemm.rows: must be an integer above 0, not 0",
        "m.toml: link.slots: must be an integer above 0, not -2",
        "m.toml: scrtach: unknown key; did you mean 'scratch'?",
    ]


@pytest.mark.parametrize("source", ["name = ", "a = 1\na = 2", "[gemm\n", b"\xff\xfe", "a = " + "[" * 5000])
def test_no_toml(source: str | bytes) -> None:
    """What is no TOML is one clear error, not a crash."""
    with pytest.raises(MachineError, match=r"m.toml: no valid TOML"):
        parse_machine(source, "m.toml")


def test_a_section_that_is_none() -> None:
    """A number where a table belongs is named."""
    assert "m.toml: link: must be a table, not 3" in mistakes_of('link = 3\nname = "x"')


def matmul(machine: Machine) -> Matmul:
    """The machine's engine for products."""
    gemm = machine.engine["gemm"]
    assert isinstance(gemm, Matmul)
    return gemm


def machine_with(**values: str) -> Machine:
    """The default machine with overrides, dots written as double underscores."""
    return load_machine().override({path.replace("__", "."): text for path, text in values.items()})


def test_overrides() -> None:
    """An override replaces one field, is read exactly, and shows in the name."""
    machine = machine_with(gemm__rows="128", clock_ghz="1.4", topology__kind="mesh2d", topology__shape="[2, 4]")
    assert (matmul(machine).rows, machine.clock_ghz, machine.topology.shape) == (128, Fraction(7, 5), (2, 4))
    assert machine.name == "ahbm-pe with gemm.rows=128, clock_ghz=1.4, topology.kind=mesh2d, topology.shape=[2, 4]"
    math = machine_with(math__cycles__add="2.5").engine["math"]
    assert isinstance(math, Elementwise) and math.cycles.of("add") == Fraction(5, 2)
    assert machine_with(cpu__issue_cycles__gemm="9").cpu.issue_cycles.of("dot", "gemm") == 9
    assert machine_with(name="other").name == "other"
    assert load_machine().override({}) is load_machine()


def test_both_spellings_of_a_dtype_are_one_field() -> None:
    """``f16`` and ``float16`` override the same rate."""
    machine = machine_with(gemm__rate__f16="2").override({"gemm.rate.float16": "4"})
    assert matmul(machine).rate.of("float16") == 4 and matmul(machine).rate.of("bfloat16") == 1


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("gemm.rwos", "1", r"no machine field 'gemm.rwos'\n  help: did you mean 'gemm.rows'\?"),
        ("gemm", "1", r"no machine field 'gemm'"),
        ("gemm.rows", "many", r'--set: gemm.rows: must be an integer above 0, not "many"'),
        ("gemm.rows", "1\nname = 3", r"--set: gemm.rows: must be an integer above 0, not"),
        ("topology.shape", "[2, 2]", r'--set: topology.shape: only a "mesh2d" has a shape'),
    ],
)
def test_overrides_that_do_not_fit(path: str, text: str, message: str) -> None:
    """An unknown path names the nearest; a wrong value is refused like in a file."""
    with pytest.raises(OptionError, match=message):
        load_machine().override({path: text})


@pytest.mark.parametrize("channels", ["0", "1025", str(2**62)])
def test_an_engine_has_lanes_that_can_be_drawn(channels: str) -> None:
    """Each is a row of the timelines: 1 to 1024 of them."""
    with pytest.raises(OptionError, match="an integer from 1 to 1024"):
        load_machine().override({"dma_read.channels": channels})
    assert load_machine().override({"dma_read.channels": "1024"}).engine["dma_read"].channels == 1024


def test_a_description_takes_from_its_base_what_it_does_not_say() -> None:
    """Tables are merged key by key, numbers in tables too; everything else is the base's."""
    made = parse_machine('name = "mine"\nbase = "ahbm-pe"\n[gemm]\nrows = 128\n[math.cycles]\nexp = 2\n', "m.toml")
    by_hand = load_machine("ahbm-pe").override({"gemm.rows": "128", "math.cycles.exp": "2", "name": "mine"})
    assert made == by_hand
    assert parse_machine(made.to_toml(), "again") == made


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ('"ahbm-pee"', r"m.toml: base: no preset 'ahbm-pee'[\s\S]*help: did you mean 'ahbm-pe'"),
        ('"./m.toml"', "no preset './m.toml'"),
        ("3", "no preset 3"),
        ('["ahbm-pe"]', "no preset"),
    ],
)
def test_a_base_is_a_preset_and_no_file(base: str, message: str) -> None:
    """A description opens no path that it names."""
    with pytest.raises(MachineError) as caught:
        parse_machine(f'name = "mine"\nbase = {base}\n', "m.toml")
    assert re.search(message, f"{caught.value.message}\nhelp: {caught.value.help}")


def test_mistakes_over_a_base_have_their_path() -> None:
    """What the base has is not named; what is written over it is judged as ever."""
    assert mistakes_of('name = "mine"\nbase = "ahbm-pe"\n[gemm]\nrow = 128\n[scratch]\nbytes = -1\n') == [
        "m.toml: scratch.bytes: must be an integer above 0, not -1",
        "m.toml: gemm.row: unknown key; did you mean 'rows'?",
    ]


def test_an_operation_that_is_not_listed_costs_what_its_class_does() -> None:
    """By name, else by class, else the default; what moves values costs the default and cannot be listed."""
    machine = load_machine("ahbm-pe").override({"math.cycles.transcendental": "6", "math.cycles.division": "5"})
    pow_, exp, mod, add = (OPERATIONS[name] for name in ("pow", "exp", "mod", "add"))
    cycles = [(duration_ps(machine, op, (256, 0, 0), float32) // 1000) - 4 for op in (pow_, exp, mod, add)]
    assert cycles == [6, 4, 5, 1]
    with pytest.raises(MachineError, match="always costs the default"):
        parse_machine('name = "mine"\nbase = "ahbm-pe"\n[math.cycles]\nmove = 2\n', "m.toml")


def test_a_machine_without_an_engine_for_an_operation_says_so() -> None:
    """Both are named, with the engines that there are."""

    def kernel(x: Any, o: Any) -> None:
        tl.store(o[:, :], tl.dot(tl.load(x[:, :]), tl.load(x[:, :])))

    graph = ks.trace(kernel, ks.hbm((16, 16), "f16"), ks.hbm((16, 16), "f32"))
    machine = load_machine()
    others = Listed({name: part for name, part in machine.engine.items() if name != "gemm"})
    lacking = attrs.evolve(machine, name="lacking", engine=others)
    with pytest.raises(MachineError, match="machine lacking has no engine for dot, which needs one of kind matmul"):
        node_engines(graph, lacking)
