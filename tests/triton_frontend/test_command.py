"""``kernscope triton SCRIPT``, ``ks.triton.session()`` and ``pytest --kernscope-triton``: kernels as they stand."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import kernscope as ks
from kernscope.cli import main

ADD = """\
import sys

import numpy as np
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x, y):
    out = np.empty_like(x)
    n = x.size
    add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=256)
    return out


def test_add():
    x = np.arange(1000, dtype=np.float32)
    assert np.array_equal(add(x, x + 1), 2 * x + 1)


if __name__ == "__main__":
    print("arguments", sys.argv[1:])
    test_add()
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A script in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("add.py").write_text(ADD)
    return "add.py"


def run(*words: str) -> int:
    """The exit status of ``kernscope triton``."""
    return main(["triton", *words])


def test_a_script_runs_as_it_stands(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With its arguments; a launch is told with its programs, scratch, times and findings."""
    before = dict(sys.modules)
    assert run(script, "--flag", "3") == 0
    out, err = capsys.readouterr()
    assert "arguments ['--flag', '3']" in err
    assert out == (
        "add_kernel(4,)  4 programs in 1 trace  add.py:8\n"
        "  scratch   2,048 B of 1,048,576 B a program, peak at line 14\n"
        "  schedule  list 329 ns a program, 1.00 x its bound (loaded path); the launch 329 ns on 32 PEs\n"
        "  findings  none\n"
        "\n"
        "1 launch of 1 kernel, 0 errors, 0 warnings\n"
    )
    assert [name for name in sys.modules if name.split(".")[0] == "triton" and name not in before] == []


def test_graphs_that_are_saved_are_graphs_like_others(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Other commands take them; a report is a page."""
    assert run("--save", "graphs", "--report", "pages", script) == 0
    (saved,) = Path("graphs").iterdir()
    assert saved.name == "001-add_kernel.ksg"
    assert Path("pages", "001-add_kernel.html").read_text().startswith("<!doctype html>")
    for command in (["lint"], ["schedule"], ["run"], ["timeline", "-o", "t.json"], ["draw", "-o", "g.svg"]):
        assert main([command[0], str(saved), *command[1:]]) == 0, command
    capsys.readouterr()


def test_a_script_that_fails_is_told_with_its_line(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    """After what its launches did; exit status 2. ``sys.exit()`` is no failure."""
    Path(script).write_text(ADD + "    assert 1 + 1 == 3, 'wrong'\n")
    assert run(script) == 2
    out = capsys.readouterr().out
    assert "1 launch of 1 kernel" in out
    assert "error[KE606]: add.py raised AssertionError: wrong" in out
    assert "add.py:33" in out
    Path(script).write_text(ADD + "    sys.exit()\n")
    assert run(script) == 0
    Path(script).write_text(ADD + "    sys.exit(3)\n")
    assert run(script) == 2


def test_a_name_that_is_missing_is_told_with_its_line(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where it is imported."""
    for change, code in (("tl.no_such(x)", "KE601"), ("from triton.language import no_such", "KE601")):
        Path(script).write_text(ADD.replace("mask = offsets < n", f"mask = offsets < n; {change}", 1))
        if change.startswith("from"):
            Path(script).write_text(f"{change}\n{ADD}")
        assert run("--output-format", "concise", script) == 2
        (line,) = capsys.readouterr().out.splitlines()
        assert code in line
        assert "no_such" in line
        assert "kernscope" in line


def test_launches_are_selected(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By kernel and by number; what is not there is a mistake with a suggestion."""
    Path(script).write_text(ADD + "    add(np.ones(8, np.float32), np.ones(8, np.float32))\n")
    assert run("--launch", "2", script) == 0
    assert capsys.readouterr().out.startswith("add_kernel(1,)")
    assert run("--kernel", "add_kernel", script) == 0
    assert "2 launches of 1 kernel" in capsys.readouterr().out
    assert run("--kernel", "ad_kernel", script) == 2
    assert "'add_kernel'" in capsys.readouterr().err
    assert run("--launch", "3", script) == 2


def test_findings_count(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Those at error level make the exit status 1; the formats are those of lint."""
    Path(script).write_text(ADD.replace("mask = offsets < n", "mask = offsets < n + 24").replace("=256", "=1024"))
    assert run("--output-format", "json", script) == 1
    document = json.loads(capsys.readouterr().out)
    assert {finding["code"] for report in document["reports"] for finding in report["findings"]} == {"KS501"}


def test_all_configurations_in_a_table(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What fits first, then the shortest launch; what the language refuses last."""
    tuned = ADD.replace(
        "@triton.jit",
        "@triton.autotune([triton.Config({'BLOCK': b}) for b in (64, 1024, 100)], key=['n'])\n@triton.jit",
    ).replace(", BLOCK=256", "")
    Path(script).write_text(tuned)
    assert run("--configs", script) == 0
    out = capsys.readouterr().out
    assert "add_kernel: 3 configurations, best first" in out
    rows = [line for line in out.splitlines() if line.strip().startswith("BLOCK:")]
    assert ["refused" in row for row in rows] == [False, False, True]
    assert "1 launch of 1 kernel" in out


def test_a_script_without_a_launch_says_so(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And how its tests are run, if it has some."""
    Path(script).write_text(ADD.replace("__main__", "nobody"))
    assert run(script) == 0
    assert f"pytest {script} --kernscope-triton" in capsys.readouterr().err


def test_the_machine_is_the_users(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A kernel that does not fit its scratch is told so, and by how much."""
    assert run("--set", "scratch.bytes=1024", script) == 1
    out = capsys.readouterr().out
    assert "2,048 B of 1,024 B a program, peak at line 14: DOES NOT FIT" in out
    assert "KS101" in out


def kernels() -> Any:
    """A kernel of this module's own, made inside a session."""
    import triton  # noqa: PLC0415  (it is there in a session only)
    import triton.language as tl  # noqa: PLC0415

    @triton.jit
    def scale(x_ptr, factor, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x_ptr + at, tl.load(x_ptr + at) * factor)

    return scale


def test_a_session_in_python() -> None:
    """Its launches have graphs like any other: they lint, schedule and run."""
    x = np.arange(64, dtype=np.float32)
    with ks.triton.session("ahbm-pe", processing_elements=2) as session:
        kernels()[(4,)](x, 3.0, BLOCK=16)
    assert np.array_equal(x, 3 * np.arange(64))
    (launch,) = session.launches
    assert (launch.kernel, launch.grid, launch.programs) == ("scale", (4, 1, 1), 4)
    (graph,) = launch.graphs
    assert ks.lint(graph).ok
    assert launch.makespan_ps == 2 * ks.schedule(graph, effort="fast").makespan_ps
    assert np.array_equal(ks.run(graph)["x_ptr"][:16], 3 * np.arange(16))


def test_a_session_ends_however_it_ends() -> None:
    """And another one may begin."""
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), ks.triton.session():
            raise ZeroDivisionError
        assert "triton.language" not in sys.modules or hasattr(sys.modules["triton"], "__file__")
    with pytest.raises(ks.OptionError), ks.triton.session(processing_elements=0):
        pass


def test_what_an_atomic_found_may_be_left_alone() -> None:
    """Nobody has to read it: the atomic itself was asked for."""
    locks = np.zeros(1, np.int32)
    with ks.triton.session() as session:
        import triton  # noqa: PLC0415  (it is there in a session only)
        import triton.language as tl  # noqa: PLC0415

        @triton.jit
        def release(lock):  # type: ignore[no-untyped-def]
            tl.atomic_xchg(lock, 1)

        release[(3,)](locks)
    assert locks[0] == 1
    assert [d.code for d in session.launches[0].lint()] == []


def test_zeros_that_are_scaled_by_a_column() -> None:
    """A tile of one number, computed with a value of another shape."""
    out = np.ones((8, 16), np.float32)
    with ks.triton.session():
        import triton  # noqa: PLC0415  (it is there in a session only)
        import triton.language as tl  # noqa: PLC0415

        @triton.jit
        def kernel(out, M: tl.constexpr, N: tl.constexpr):  # type: ignore[no-untyped-def]
            rows, cols = tl.arange(0, M), tl.arange(0, N)
            scale = tl.load(out + rows * N)
            acc = tl.zeros([M, N], dtype=tl.float32)
            for _ in range(2):
                acc = acc * scale[:, None] + 1
            tl.store(out + rows[:, None] * N + cols[None, :], acc)

        kernel[(1,)](out, M=8, N=16)
    assert (out == 2).all()


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn", "bfloat16", "float16", "int8", "bool", "int64"])
def test_a_copy_of_every_dtype(name: str) -> None:
    """Also of those that numpy has no name for."""
    kind = getattr(ml_dtypes, name, None) or getattr(np, name.replace("bool", "bool_"))
    x = (np.arange(64) % 2).astype(kind)
    out = np.zeros_like(x)
    with ks.triton.session():
        import triton  # noqa: PLC0415  (it is there in a session only)
        import triton.language as tl  # noqa: PLC0415

        @triton.jit
        def copy(out, x, N: tl.constexpr):  # type: ignore[no-untyped-def]
            at = tl.program_id(0) * N + tl.arange(0, N)
            tl.store(out + at, tl.load(x + at))

        copy[(4,)](out, x, N=16)
    assert np.array_equal(out, x)


FAULTY = """\
import numpy as np
import triton
import triton.language as tl


@triton.jit
def faulty(x_ptr, o_ptr, n, big, N: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    x = tl.load(x_ptr + i)
    y = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i + big * 4 - big * 4, x + tl.sum(y, 0), mask=i < n)


x, out = np.zeros(20, np.float32), np.zeros(20, np.float32)
faulty[(3,)](x, out, 20, 2**30, N=8)
"""


def test_what_one_program_alone_does_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it does is an error whichever program it is of, with the first one, and can be silenced."""
    monkeypatch.chdir(tmp_path)
    Path("faulty.py").write_text(FAULTY)
    assert run("faulty.py") == 1
    out, _ = capsys.readouterr()
    assert (
        "error[KS501]: element 23 of `x_ptr` is accessed, which has 20, in 1 of 3 programs, first in program 2\n" in out
    )
    assert "  --> faulty.py:10:9" in out
    undefined = "the store to o_ptr uses what the masked load in line 11 leaves undefined"
    assert f"error[KS802]: {undefined}, in 1 of 3 programs, first in program 2\n" in out
    assert "an int32 wraps around on its way to an address of `o_ptr`, in 3 of 3 programs" in out
    line = "x = tl.load(x_ptr + i)"
    Path("faulty.py").write_text(FAULTY.replace(line, f"{line}  # kernscope: ignore[KS501]"))
    assert run("--output-format", "concise", "faulty.py") == 1
    assert "KS501" not in capsys.readouterr().out
    mended = [("(x_ptr + i)", "(x_ptr + i, i < n, 0.0)"), ("mask=i < n)\n    tl", "mask=i < n, other=0)\n    tl")]
    text = FAULTY.replace("+ big * 4 - big * 4", "")
    for wrong, right in mended:
        assert wrong in text
        text = text.replace(wrong, right)
    Path("faulty.py").write_text(text)
    assert run("faulty.py") == 0
    assert "0 errors" in capsys.readouterr().out


def test_plain_functions_of_the_host_find_bare_numbers_in_a_kernel(tmp_path: Path) -> None:
    """A library's helper asks whether a number is a `tl.constexpr`, and takes its `.value` only then; a kernel's own
    question is answered with yes."""
    source = """
import triton
import triton.language as tl

def unwrapped(o):
    return o.value if isinstance(o, tl.constexpr) else o

@tl.constexpr
def wider(bits: tl.constexpr, signed: tl.constexpr) -> tl.dtype:
    return tl.core.get_int_dtype(2 * unwrapped(bits), unwrapped(signed))

@triton.jit
def kernel(out_ptr, BITS: tl.constexpr):
    tl.static_assert(isinstance(BITS, tl.constexpr))
    tl.store(out_ptr, tl.full((), -1, tl.int32).to(wider(BITS, False)) >> BITS)
"""
    script = tmp_path / "helpers.py"
    script.write_text(source, encoding="utf-8")
    out = np.zeros(1, np.uint64)
    with ks.triton.session():
        runpy.run_path(str(script))["kernel"][(1,)](out, 32)
    assert out.tolist() == [2**32 - 1]


def test_a_store_through_a_constant_pointer_is_refused(tmp_path: Path) -> None:
    """Whatever was added to it on the way; loads, and stores through the same memory's other pointer, run."""
    script = tmp_path / "constant.py"
    script.write_text(
        """
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr: tl.const, out_ptr, N: tl.constexpr, BAD: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + i) + 1)
    if BAD:
        tl.store(x_ptr + i[:, None], tl.zeros((N, 1), tl.float32))
""",
        encoding="utf-8",
    )
    x = np.arange(4, dtype=np.float32)
    with ks.triton.session():
        kernel = runpy.run_path(str(script))["kernel"]
        kernel[(1,)](x, x, 4, False)
        assert x.tolist() == [1, 2, 3, 4]
        with pytest.raises(ks.KernscopeError, match=r"Cannot store to a constant pointer[\s\S]*constant\.py:10"):
            kernel[(1,)](x, x, 4, True)
    assert x.tolist() == [1, 2, 3, 4]


def test_the_page_of_a_launch_has_all_that_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What only the data told as well as what the graph tells; and the index counts it, and leads there."""
    monkeypatch.chdir(tmp_path)
    Path("faulty.py").write_text(FAULTY)
    assert run("--report", "pages", "faulty.py") == 1
    page, index = (Path("pages", name).read_text() for name in ("001-faulty.html", "index.html"))
    for code in ("KS501", "KS802", "KS803"):
        assert f"{code} error<" in page
    assert "the script judges the numbers" in page and "No findings" not in page
    assert 'href="001-faulty.html"' in index and "faulty(3,)" in index and "1 with something wrong" in index
    capsys.readouterr()


@pytest.mark.parametrize("command", ["lint", "report", "schedule"])
def test_other_commands_name_the_one_for_triton(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that imports triton is run by `kernscope triton`, and the help that says so is true."""
    monkeypatch.chdir(tmp_path)
    Path("faulty.py").write_text(f"# A kernel.\n{FAULTY}")
    assert main([command, "faulty.py"]) == 2
    out, err = capsys.readouterr()
    assert "kernscope triton faulty.py" in out + err
