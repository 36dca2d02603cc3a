"""Which way a kernel's branches went: every kind of them, in the functions it calls too; the graph stays the same."""

import functools
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import kernelcases
import kernelgen
import pytest
from hypothesis import given

import kernscope as ks
from kernscope import tl
from kernscope.face import api
from kernscope.ir.branches import as_runs
from kernscope.machine.description import load_machine
from kernscope.tracer.trace import record_kernel

X, O = ks.hbm((8, 64), "f32"), ks.hbm((8, 64), "f32")


def watched(kernel: Any, *args: Any, **options: Any) -> ks.Graph:
    machine = load_machine("ahbm-pe")
    return record_kernel(
        kernel,
        args,
        options.pop("kwargs", {}),
        target=machine.target,
        machine=machine.name,
        machine_toml=machine.to_toml(),
        observe=True,
        **options,
    )


def said(branches: ks.Branches) -> list[str]:
    """Each branch without its place."""
    return [str(row).partition(": ")[2] for row in branches]


def module_of(tmp_path: Path, text: str, name: str = "written") -> ModuleType:
    """A module of a file with some text."""
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    made = ModuleType(name)
    made.__dict__["__file__"] = str(path)
    exec(compile(text, str(path), "exec"), made.__dict__)
    return made


# --- every kind -------------------------------------------------------------------------------------------------------


@ks.launch("low", x=X, o=O, tile=16)
@ks.launch("high", x=X, o=O, tile=64, flag=True)
@ks.kernel
def conditions(x: Any, o: Any, *, tile: int, flag: bool | None = None) -> None:
    """Conditions of all kinds."""
    if tile > x.shape[1]:
        raise ValueError(tile)
    if tile > 32:
        scale = 2.0
    elif flag is None:
        scale = 1.0
    else:
        scale = 0.5
    if tile > 32 and not flag:
        scale = 3.0
    scale = scale if flag else scale + 1
    twice = flag or scale > 1
    left = tile
    while left > 16:
        left -= 16
    tl.store(o[:, :], tl.load(x[:, :]) * (scale + left + bool(twice)))


def test_conditions_say_which_way_with_what_and_what_decides() -> None:
    """`if`, `elif`, a check that only raises, parts of `and`, `not`, a conditional expression, `or`, `while`; a part
    behind one that decides is not evaluated."""
    assert said(ks.branches(conditions.launch("low"))) == [
        "check `tile > x.shape[1]`: false (tile=16, x.shape=(8, 64)); depends on tile, x.shape",
        "if `tile > 32`: false (tile=16); depends on tile",
        "if `flag is None`: true (flag=None); depends on flag",
        "if `tile > 32`: false (tile=16); depends on tile",
        "if `flag`: not evaluated; depends on flag",
        "conditional `flag`: false (flag=None); depends on flag",
        "or `flag`: false (flag=None); depends on flag",
        "while `left > 16`: false (left=16); depends on tile",
    ]
    assert [row.mark for row in ks.branches(conditions.launch("high"))] == [
        *("false", "true", "true", "true", "true", "true", "both ways")
    ]


def test_launches_that_went_other_ways_are_told_apart() -> None:
    """By the branches that both came by; what one did not reach is no difference of its own, and the order of the two
    makes none."""
    low, high = (ks.branches(conditions.launch(name)) for name in ("low", "high"))
    pairs = low.differences(high)
    assert [(own.text, own.mark, its.mark) for own, its in pairs] == [
        ("tile > 32", "false", "true"),
        ("tile > 32", "false", "true"),
        ("flag", "not evaluated", "true"),
        ("flag", "false", "true"),
        ("flag", "false", "true"),
        ("left > 16", "false", "both ways"),
    ]
    assert [(its, own) for own, its in high.differences(low)] == list(pairs)
    assert low.differences(low) == ()


@ks.kernel
def loops(x: Any, o: Any, *, parts: tuple[int, ...], stop: int) -> None:
    """Loops of all kinds."""
    total = tl.zeros((8, 64), tl.float32)
    for part in parts:
        for _ in range(part):
            total = total + 1.0
            if part == stop:
                break
    for _ in range(0, x.shape[0] - 8):
        total = total + 2.0
    picked = [value + other for value in parts if value > 1 for other in (1, 2)]
    total = total + sum(n for n in picked)
    tl.store(o[:, :], total)


def test_loops_say_how_often_they_ran() -> None:
    """Also of none, and where they are left early; comprehensions and generators as loops."""
    assert said(ks.branches(loops, X, O, parts=(0, 2, 3), stop=3)) == [
        "for `parts`: ran 3 times (parts=(0, 2, 3)); depends on parts",
        "for `range(part)`: ran 1 to 2 times, entered twice (part=2); did not run (part=0); depends on parts",
        "if `part == stop`: true (part=3, stop=3); false, twice (part=2, stop=3); depends on parts, stop",
        "for `range(0, x.shape[0] - 8)`: did not run (x.shape=(8, 64)); depends on x.shape",
        "for `parts`: ran 3 times (parts=(0, 2, 3)); depends on parts",
        "if `value > 1`: true, twice (value=2); false (value=0); depends on parts",
        "for `(1, 2)`: ran twice, entered twice",
        "for `picked`: ran 4 times; depends on parts",
    ]


@ks.kernel
def cases(x: Any, o: Any, *, modes: tuple[Any, ...]) -> None:
    """`match` and `except`."""
    scale = 1.0
    for mode in modes:
        match mode:
            case "twice":
                scale *= 2
            case [first, *_] if first > 1:
                scale += first
            case int():
                pass
        try:
            scale += mode
        except TypeError:
            scale += 1
    tl.store(o[:, :], tl.load(x[:, :]) * scale)


def test_cases_and_handlers_are_told() -> None:
    """The case that was taken, its guard, that none was, and what was caught."""
    assert said(ks.branches(cases, X, O, modes=("twice", [2, 3], [0], 7))) == [
        "for `modes`: ran 4 times; depends on modes",
        "match `mode`: case 'twice' (mode='twice'); case [first, *_]; case int() (mode=7); no case; depends on modes",
        "if `first > 1`: true (first=2); false (first=0); depends on modes",
        "except `except TypeError`: caught, 3 times",
    ]


# --- the functions it calls -------------------------------------------------------------------------------------------


def pick(size: int, limit: int = 32) -> int:
    """A helper that decides."""
    if size > limit:
        return pick(size // 2, limit=limit)
    return size


class Plan:
    """A helper with methods of all kinds."""

    def __init__(self, wide: bool) -> None:
        self.wide = wide
        self.__private = wide

    def width(self) -> int:
        return 64 if self.__private else 32

    @staticmethod
    def fixed(n: int) -> int:
        return 1 if n else 2


def test_functions_that_it_calls_are_watched() -> None:
    """Functions and their recursion, methods (of private names), static ones, functions within functions with what they
    close over, lambdas, partial ones, other kernels."""

    @ks.kernel
    def inner(o: Any, n: int) -> None:
        tl.store(o[:, :], tl.full((8, 64), 1.0 if n > 1 else 2.0, tl.float32))

    bound = 40
    asked = functools.partial(pick, limit=8)

    @ks.kernel
    def kernel(o: Any, plan: Any, *, size: int) -> None:
        def within(n: int) -> int:
            nonlocal_n = n + bound
            return nonlocal_n if n > 10 else bound

        of_lambda = lambda n: 1 if n > 20 else 2  # noqa: E731
        inner(o, pick(size) + plan.width() + Plan.fixed(size) + within(size) + of_lambda(size) + asked(size))

    found = ks.branches(kernel, O, Plan(True), size=50)
    assert found.unseen == ()
    assert {(row.place.function, row.text): row.mark for row in found} == {
        ("pick", "size > limit"): "both ways",
        ("width", "self.__private"): "true",
        ("fixed", "n"): "true",
        ("kernel", "n > 10"): "true",
        ("kernel", "n > 20"): "true",
        ("inner", "n > 1"): "true",
    }


def test_what_a_library_decides_is_passed_over() -> None:
    """Python's own modules, numpy, and kernscope's: their branches are nobody's who reads the report."""

    @ks.kernel
    def kernel(x: Any, o: Any) -> None:
        scale = math.prod(functools.reduce(lambda a, b: a + b, [(1,), (2,)]))
        tl.store(o[:, :], tl.load(x[:, :]) * float(scale))

    assert len(ks.branches(kernel, X, O)) == 0


def test_a_function_whose_text_is_gone_or_another_one_is_named(tmp_path: Path) -> None:
    """It runs as it is, and says that it was not seen."""
    text = "def pick(n):\n    return 1 if n > 4 else 2\n"
    there, changed, gone = (module_of(tmp_path, text, name) for name in ("there", "changed", "gone"))
    Path(str(changed.__file__)).write_text(text.replace("4", "8"))
    Path(str(gone.__file__)).unlink()

    @ks.kernel
    def kernel(o: Any) -> None:
        there_pick, changed_pick, gone_pick = there.pick, changed.pick, gone.pick
        tl.store(o[:, :], tl.full((8, 64), there_pick(6) + changed_pick(6) + gone_pick(6), tl.float32))

    found = ks.branches(kernel, O)
    assert [row.text for row in found] == ["n > 4"]
    assert found.unseen == ("pick", "pick")


def test_a_kernel_whose_assertions_pytest_has_rewritten_is_watched() -> None:
    """Of this very file: its code is not what its text compiles to."""

    @ks.kernel
    def kernel(o: Any, n: int) -> None:
        assert n > 1, "two or more"
        tl.store(o[:, :], tl.full((8, 64), 1.0 if n > 2 else 2.0, tl.float32))

    assert "@pytest_ar" in kernel.function.__code__.co_names
    assert [(row.text, row.mark) for row in ks.branches(kernel, O, 2)] == [("n > 2", "false")]


# --- ranks, programs --------------------------------------------------------------------------------------------------


def test_ranks_and_programs_that_went_different_ways_are_told_apart() -> None:
    """Each way has the programs that went it."""

    @ks.kernel
    def kernel(o: Any) -> None:
        if tl.program_id(0) % 3 == 0:
            tl.store(o[tl.program_id(0), :], tl.zeros((64,), tl.float32))
        if tl.num_programs(0) > 1:
            pass

    for options in ({"ranks": 8}, {"grid": (8,)}, {"grid": (8,), "ranks": 4}):
        first, second = ks.branches(kernel, O, **options)  # type: ignore[arg-type]
        assert first.is_divided and not second.is_divided
        assert first.took == "true, 3 times, on 0, 3, 6; false, 5 times, on 1-2, 4-5, 7"
        assert (first.depends, second.depends) == (("tl.program_id",), ("tl.num_programs",))


@pytest.mark.parametrize(("numbers", "runs"), [((), ()), ((3,), ((3, 3),)), ((2, 0, 1, 5, 1), ((0, 2), (5, 5)))])
def test_numbers_are_kept_as_stretches(numbers: tuple[int, ...], runs: Any) -> None:
    """In order, each once."""
    assert as_runs(numbers) == runs


# --- the graph is the same --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*kernelcases.KERNELS, *kernelcases.NAIVE])
def test_a_watched_trace_is_the_same_graph(name: str) -> None:
    """Operations, accesses, places and names, of every kernel that comes with kernscope, faults recorded."""
    kernel = kernelcases.kernel_of(name)
    for launch in list(kernel.launches.values())[:2]:
        machine = load_machine(launch.machine)
        plain, seen = (
            record_kernel(
                kernel,
                (),
                launch.arguments,
                target=machine.target,
                machine=machine.name,
                machine_toml=machine.to_toml(),
                ranks=launch.ranks,
                grid=launch.grid,
                on_overflow="record",
                on_bounds="record",
                observe=observe,
            )
            for observe in (False, True)
        )
        assert seen == plain
        assert plain.branches is None and seen.branches is not None and seen.branches.unseen == ()
        if len(plain) < 2_000:
            continue
        break


@given(kernelgen.programs(ranks=2))
@kernelgen.examples(20)
def test_watching_changes_no_generated_program(program: kernelgen.Program) -> None:
    """Nor what it records: on whatever machine, in scopes or programs of a grid."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "record_kernel", functools.partial(record_kernel, observe=True))
        seen = program.trace()
    assert seen == program.trace()
    assert seen.branches is not None and seen.branches.unseen == () and len(seen.branches)


def test_what_a_kernel_raises_is_its_own() -> None:
    """The same error, at the same line, and nothing stays behind."""

    @ks.kernel
    def kernel(x: Any) -> None:
        for part in range(2):
            if part:
                tl.load(x[9:10, :])

    places = []
    for call in (ks.trace, ks.lint, ks.trace):
        if call is ks.lint:
            ks.branches(kernel, X)
            continue
        with pytest.raises(ks.BoundsError) as caught:
            call(kernel, X)
        places.append(caught.value.places[0][1])
    assert places[0] == places[1]


@pytest.mark.parametrize("line", ["for row in x: pass", "h = tl.load(x) if x else None", "tl.load(x[9:10, :])"])
def test_what_is_refused_is_refused_at_the_same_line(tmp_path: Path, line: str) -> None:
    """Also where the question itself is at fault."""
    module = module_of(tmp_path, f"from kernscope import tl\ndef kernel(x):\n    {line}\n")
    said = []
    for observe in (False, True):
        with pytest.raises(ks.KernscopeError) as caught:
            machine = load_machine("ahbm-pe")
            record_kernel(module.kernel, (X,), {}, target=machine.target, machine=machine.name, observe=observe)
        said.append((caught.value.message, caught.value.help, caught.value.places[0][1].line))
    assert said[0] == said[1]


# --- kept -------------------------------------------------------------------------------------------------------------


def test_a_saved_graph_keeps_them_or_does_not_know(tmp_path: Path) -> None:
    """What was watched comes back as it was; what was not says None. They are no part of what a graph is."""
    seen = watched(loops, X, O, kwargs={"parts": (0, 2, 3), "stop": 3})
    plain = ks.trace(loops, X, O, parts=(0, 2, 3), stop=3)
    for graph in (seen, plain):
        graph.save(tmp_path / "graph.ksg")
        back = ks.load(tmp_path / "graph.ksg")
        assert back == seen == plain
        assert back.branches == graph.branches
    assert plain.branches is None


def test_lint_has_them_where_it_traces_twice() -> None:
    """The second trace is the one that is watched; a trace that is not repeated says None."""
    report = ks.lint(loops, X, O, parts=(1,), stop=3, trace_twice=True)
    assert report.branches == ks.branches(loops, X, O, parts=(1,), stop=3)
    assert ks.lint(loops, X, O, parts=(1,), stop=3, trace_twice=False).branches is None


LAMBDAS = """
from kernscope import tl

one = lambda h, big: h * 2.0 if big else h
two, three = (lambda h, big: h + 1.0 if big else h), (lambda h, big: h - 1.0 if big else h)


def kernel(x, o, big=True):
    h = one(tl.load(x), big)
    h = {second}(h, big) if big else h
    tl.store(o, h)
"""


@pytest.mark.parametrize(("second", "unseen"), [("one", ()), ("two", ("<lambda>",))])
def test_a_lambda_is_watched_where_it_is_the_only_one_of_its_line(
    tmp_path: Path, second: str, unseen: tuple[str, ...]
) -> None:
    """Which of several was called cannot be told: then it is named as not seen. Branches are found by file and line."""
    module = module_of(tmp_path, LAMBDAS.format(second=second))
    branches = watched(module.kernel, X, O).branches
    assert branches is not None and branches.unseen == unseen
    file = str(tmp_path / "written.py")
    assert [row.text for row in branches.at(file, 4)] == ["big"]
    assert [row.text for row in branches.at(file, 10)] == ["big"]
    assert branches.at(file, 5) == branches.at(file, 9) == branches.at("other.py", 4) == ()
