"""Samples of a launch's programs, and tensors of sizes that no laptop holds."""

from __future__ import annotations

import resource
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tritonkernels import launched, tl

import kernscope as ks
from kernscope.cli import main
from kernscope.ir.launch_facts import FactKind
from kernscope.tracer.triton.sampling import ProgramSample


def shifted(x_ptr, o_ptr, n, N: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * N + tl.arange(0, N)
    if tl.program_id(0) % 3 == 1:
        tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0.0) + 1, mask=i < n)
    else:
        tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0.0) - 1, mask=i < n)


@pytest.mark.parametrize(
    ("text", "count", "chosen"),
    [
        ("first", 9, [0]),
        ("last", 9, [8]),
        ("first:2, last:2", 9, [0, 1, 7, 8]),
        ("last:3,first:3", 4, [0, 1, 2, 3]),
        ("3,5-6", 9, [3, 5, 6]),
        ("5-20,700", 9, [5, 6, 7, 8]),
        ("100-200", 9, [8]),
        ("random:20", 9, list(range(9))),
        ("first,last,random:5", 0, []),
    ],
)
def test_a_sample_says_which_programs(text: str, count: int, chosen: list[int]) -> None:
    """Ascending, each once, none that the grid has not; a number beyond the last program stands for that one."""
    assert ProgramSample.of(text).chosen(count).tolist() == chosen


def test_random_programs_are_the_same_from_run_to_run() -> None:
    """And none twice, also out of more than any array could count."""
    sample = ProgramSample.of("random:64")
    (one, two) = (sample.chosen(1 << 40).tolist() for _ in range(2))
    assert one == two
    assert len(set(one)) == 64
    assert max(one) > 1 << 38


@pytest.mark.parametrize(
    "text",
    [
        "",
        "first,",
        "frist",
        "random:0",
        "7-3",
        "-1",
        "1.5",
        3,
        "random:",
        "9" * 30,
        "first:" + "9" * 30,
        "7-" + "9" * 30,
    ],
)
def test_what_says_no_programs_is_refused(text: str) -> None:
    """With what can be written."""
    with pytest.raises(ks.OptionError, match="says no programs") as caught:
        ks.triton.session(programs=text)
    assert "random:64" in str(caught.value.help)


def test_a_sample_is_what_all_programs_are_there() -> None:
    """Property: programs that are run store what they would store among all, have the same graph, and nothing else is
    stored."""
    for text in ("first,last", "random:7", "2-9,40", "first:50"):
        x = np.arange(800, dtype=np.float32)
        every, some = np.zeros(800, np.float32), np.zeros(800, np.float32)
        whole = launched(shifted, 50, x, every, 790, N=16)
        part = launched(shifted, 50, x, some, 790, N=16, options={"programs": ProgramSample.of(text)})
        run = ProgramSample.of(text).chosen(50)
        assert sorted(p for trace in part.traces for p in trace.programs.tolist()) == run.tolist()
        assert (part.programs, part.programs_run, whole.programs_run) == (50, len(run), 50)
        there = np.zeros(50, bool)
        there[run] = True
        assert np.array_equal(some, np.where(np.repeat(there, 16), every, 0))
        for program in run.tolist():
            assert str(part.graph(program)) == str(whole.graph(program))
        left_out = np.flatnonzero(~there)
        for program in left_out[:1].tolist():
            with pytest.raises(ks.ArgumentError, match=r"of which .* were run"):
                part.graph(program)


def far(x_ptr, o_ptr, stride, N: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * stride + tl.arange(0, N)
    tl.store(o_ptr + i, tl.load(x_ptr + i) + 1)


def test_an_offset_wraps_in_a_tensor_that_no_laptop_holds() -> None:
    """16 GiB each, of which a launch of four programs touches some pages: the int32 that wraps is found in the programs
    whose offset does not fit, numbers of the others are right, and neither memory nor races take more than was written.
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    x, out = (ks.triton.empty(1 << 32, "f32") for _ in range(2))
    x[5], x[(1 << 20) * 2047] = 3, 4
    sample = ProgramSample.of("first,2047-2049,last")
    made = launched(far, 4096, x, out, 1 << 20, N=64, options={"programs": sample})
    wrapped = [fact for fact in made.facts if fact.kind == FactKind.WRAPPED]
    assert wrapped
    outside = {p for f in made.facts if f.kind == FactKind.OUTSIDE for p in f.programs.tolist()}
    assert outside == {2048, 2049, 4095}
    assert (out[5], out[(1 << 20) * 2047], out[1]) == (4, 5, 1)
    assert made.races() == ()
    # Kilobytes: a tenth of one tensor would be more.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20


def test_an_untouched_tensor_is_an_array_of_zeros() -> None:
    """Of any dtype that kernels have, by its name here, numpy's or Triton's; it can be written."""
    for dtype, numpy in (("bf16", ml_dtypes.bfloat16), (np.int64, np.int64), (tl.float16, np.float16)):
        made = ks.triton.empty((3, 4), dtype)
        assert (made.shape, made.dtype) == ((3, 4), np.dtype(numpy))
        assert not made.astype(np.float32).any()
        made[1, 2] = 1
        assert made.astype(np.float32).sum() == 1
    assert ks.triton.empty((2, 0), "f32").shape == (2, 0)
    for shape in (-1, (2, -3), 1.5, (1 << 62, 1 << 10)):
        with pytest.raises(ks.ShapeError):
            ks.triton.empty(shape, "f32")


SCRIPT = """\
import numpy as np
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


x = np.ones(1000, np.float32)
scale[(63,)](x, 1000, BLOCK=16)
assert x.sum() in (1000 + 16 + 8, 2000), x.sum()
"""


def test_a_sample_is_said_in_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """How many programs were run, that the launch's time is an estimate, and what is not known; nothing of that where
    all are run."""
    monkeypatch.chdir(tmp_path)
    Path("scale.py").write_text(SCRIPT)
    assert main(["triton", "--programs", "first,last", "scale.py"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("scale(63,)  2 of 63 programs in 1 trace  scale.py:6")
    assert "the launch about " in out
    assert "only a sample of the programs was run (first,last)" in err
    assert main(["triton", "--programs", "first:63", "scale.py"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("scale(63,)  63 programs in 1 trace")
    assert "about" not in out
    assert "sample" not in err
    assert main(["triton", "--programs", "some", "scale.py"]) == 2
    assert "says no programs" in capsys.readouterr().err
