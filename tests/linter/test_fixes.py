"""Helps as code: what a finding proposes as an edit is applied, linted and run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import kernscope as ks
from kernscope.linter import LintReport
from kernscope.linter.edits import Edit, Fix, apply_edits
from kernscope.machine.description import parse_machine

from .conftest import HEADER
from .fixcases import CASES, Case, X
from .unsurecases import ADVICE, Advice

Load = Callable[[str], ks.Kernel]


def source(text: str) -> str:
    """A module's text for a case: a body becomes that of a kernel."""
    body = text.lstrip("\n")
    if "@" in body:
        return HEADER + body
    return HEADER + "@ks.kernel\ndef kernel(x, o):\n" + "".join(f"    {line}\n" for line in body.splitlines())


def arguments(case: Case | Advice) -> tuple[Any, Any]:
    """A case's tensors: what it loads has the dtype of what it stores."""
    return X.astype(np.float16 if case.dtype == "f16" else np.float32), ks.hbm(case.shape, case.dtype)


def applied(fix: Fix, text: str) -> str:
    """The text of the (one) file that a fix changes, changed."""
    assert {Path(edit.file).name for edit in fix.edits} == {"kernel.py"}
    return apply_edits(text, fix.edits)


def followed(load_kernel: Load, case: Case) -> tuple[str, LintReport]:
    """A case's module after the fixes of its code, one after the other, each of which is judged."""
    text = source(case.text)
    for _ in range(10):
        report = ks.lint(load_kernel(text), *arguments(case))
        findings = [d for d in report.of(case.code) if d.fixes]
        if not findings:
            return text, report
        for fix in findings[0].fixes:
            # The help says what the edit does, and no edit changes the file behind the linter's back.
            assert fix.title in findings[0].help
            changed = ks.lint(load_kernel(applied(fix, text)), *arguments(case))
            before, after = (Counter(d.code for d in r) for r in (report, changed))
            assert after[case.code] < before[case.code], f"{applied(fix, text)}\n{changed}"
            assert not set(after - before) - set(case.others), f"{applied(fix, text)}\n{changed}"
        text = applied(findings[0].fixes[0], text)
    raise AssertionError("the fixes come to no end")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code}: {case.name}")
def test_following_the_help_helps(load_kernel: Load, case: Case) -> None:
    """The finding is gone, no other has come, and the numbers are what the author meant."""
    before = ks.lint(load_kernel(source(case.text)), *arguments(case))
    assert any(d.fixes for d in before.of(case.code)), str(before)
    text, report = followed(load_kernel, case)
    assert case.code not in {d.code for d in report}, f"{text}\n{report}"
    if not report.ok:
        return
    graph = ks.trace(load_kernel(text), *arguments(case))
    (got,) = ks.run(graph, poison=True).values()
    np.testing.assert_allclose(got.astype(np.float32), case.meant(X), rtol=1e-5, err_msg=text)


@pytest.mark.parametrize("advice", ADVICE, ids=lambda advice: f"{advice.code}: {advice.name}")
def test_what_is_not_sure_to_be_right_is_no_edit(load_kernel: Load, advice: Advice) -> None:
    """The finding is there, and its help is advice."""
    report = ks.lint(load_kernel(source(advice.text)), *arguments(advice))
    findings = report.of(advice.code)
    assert findings, str(report)
    assert [d.fixes for d in findings] == [()] * len(findings), findings[0].fixes


#: Two memories that every engine reaches.
TWO_MEMORIES = """
name = "two"
clock_ghz = 1.0
[memory]
hbm = { scope = "global" }
far = { bytes = 65536, align = 16 }
near = { bytes = 65536, align = 16 }
[engine.dma]
kind = "transfer"
reads = ["hbm", "far", "near"]
writes = ["hbm", "far", "near"]
ops = ["load", "store"]
bytes_per_ns = 64
[engine.vector]
kind = "elementwise"
reads = ["far", "near"]
writes = ["far", "near"]
lanes = 64
startup_cycles = 0
[place]
default = "far"
"""


@pytest.mark.parametrize(("space", "proposed"), [("far", True), ("near", False)])
@pytest.mark.parametrize(
    ("code", "text"),
    [
        (
            "KS201",
            """
with tl.scratch_scope():
    s = tl.load(x[0, :], space="SPACE")
tl.store(o[:], s + tl.load(x[1, :]))
""",
        ),
        (
            "KS201",
            """
s = tl.load(x[2, :])
with tl.scratch_scope():
    s = tl.load(x[0, :], space="SPACE")
tl.store(o[:], s + tl.load(x[1, :]))
""",
        ),
        (
            "KS503",
            """
a = tl.load(x[0, :])
b = tl.load(x[0, :], space="SPACE")
tl.store(o[:], a * b)
""",
        ),
    ],
)
def test_no_edit_brings_a_value_into_another_memory(
    load_kernel: Load, code: str, text: str, space: str, proposed: bool
) -> None:
    """A new handle lies where results go, an old one where it is: a value that was put elsewhere is left there."""
    kernel = load_kernel(source(text.replace("SPACE", space)))
    report = ks.lint(kernel, X, ks.hbm((8,), "f32"), machine=parse_machine(TWO_MEMORIES, "two.toml"))
    assert [bool(d.fixes) for d in report.of(code)] == [proposed], str(report)


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.code not in ("KS001", "KS501")],
    ids=lambda case: f"{case.code}: {case.name}",
)
def test_a_source_that_has_changed_is_not_edited(load_kernel: Load, tmp_path: Path, case: Case) -> None:
    """Lines of another text than was traced are no place for an edit; what is found is found all the same."""
    graph = ks.trace(load_kernel(source(case.text)), *arguments(case), on_overflow="record")
    (tmp_path / "kernel.py").write_text("changed = True\n" + source(case.text), encoding="utf-8")
    report = ks.lint(graph)
    assert [d for d in report if d.fixes] == []
    assert case.code in {d.code for d in report}, str(report)


def without_places(graph: ks.Graph) -> ks.Graph:
    """A graph of which nobody knows the lines."""
    tables = {name: getattr(graph, name) for name in ("nodes", "storages", "scopes")}
    bare = {name: attrs.evolve(table, stack=np.full_like(table.stack, -1)) for name, table in tables.items()}
    return attrs.evolve(graph, **bare, unentered_scopes=())


@pytest.mark.parametrize("code", sorted({case.code for case in CASES} - {"KS001", "KS206", "KS501"}))
def test_what_has_no_place_is_found_all_the_same(load_kernel: Load, code: str) -> None:
    """Without lines there is nothing to point at or to edit, and no line that runs again and again (KS103, KS601)."""
    for case in [case for case in CASES if case.code == code][:4]:
        graph = ks.trace(load_kernel(source(case.text)), *arguments(case), on_overflow="record")
        there, bare = ks.lint(graph), ks.lint(without_places(graph))
        assert {d.code for d in there} - {"KS103", "KS601"} <= {d.code for d in bare}
        assert all((d.locations, d.fixes) == ((), ()) and d.help for d in bare)
        assert str(bare).endswith(bare.summary)


def test_edits_are_applied_from_the_end() -> None:
    """Each names lines of the text as it was; a text without a line end at its end keeps none."""
    edits = [Edit("f", 2, 3, ""), Edit("f", 1, 1, "one\nand a half\n"), Edit("f", 5, 5, "five\n")]
    assert apply_edits("1\n2\n3\n4\n5", edits) == "one\nand a half\n4\nfive"


@pytest.mark.parametrize("lines", [[(1, 2), (2, 3)], [(0, 1)], [(3, 2)], [(4, 9)], [(5, 5)]])
def test_edits_that_overlap_or_lie_outside_are_refused(lines: list[tuple[int, int]]) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError, match="not there, or edited twice"):
        apply_edits("1\n2\n3\n4", [Edit("f", first, last, "") for first, last in lines])


def test_every_rule_that_proposes_edits_has_a_case() -> None:
    """``lint --fix`` applies what rules propose: nothing of it may be untried."""
    rules = Path(ks.__file__).parent / "linter" / "rules"
    proposing = {
        path.name[:5].upper()
        for path in rules.glob("ks*.py")
        if "fixes=" in (text := path.read_text(encoding="utf-8")) or "wording.after_scope" in text
    }
    assert len(proposing) > 10 and proposing <= {case.code for case in CASES}
