"""KS802: elements that a masked load leaves undefined, and that are used."""

from __future__ import annotations

import pytest

KERNEL = """
@triton.jit
def kernel(x_ptr, o_ptr, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i, mask=i < n{other})
    {use}


kernel[(3,)](np.ones({size}, np.float32), np.zeros(24, np.float32), {size}, N=8)
"""


@pytest.mark.parametrize(
    ("use", "other", "by"),
    [
        ("tl.store(o_ptr + tl.program_id(0), tl.sum(x, 0))", "", "the store to o_ptr"),
        ("tl.store(o_ptr + tl.program_id(0), tl.max(x * 2.0, 0))", "", "the store to o_ptr"),
        ("tl.store(o_ptr + i, x)", "", "the store to o_ptr"),
        ("tl.store(o_ptr + tl.program_id(0), tl.sum(x, 0))", ", other=0.0", None),
        ("tl.store(o_ptr + i, x, mask=i < n)", "", None),
        ("tl.store(o_ptr + tl.program_id(0), tl.sum(tl.where(i < n, x, 0.0), 0))", "", None),
    ],
)
def test_what_fires_and_what_does_not(lint_triton, use, other, by):
    """A use of undefined elements, in the programs that have some; not where they were masked off again."""
    found = lint_triton(KERNEL.format(use=use, other=other, size=20), select=["KS802"])
    said = [f"{by} uses what the masked load in line 8 leaves undefined, in 1 of 3 programs, first in program 2"]
    assert [d.message for d in found] == (said if by else [])
    assert not lint_triton(KERNEL.format(use=use, other=other, size=24), select=["KS802"]).diagnostics


def test_what_lies_outside_is_no_masked_load(lint_triton):
    """It is one fault, and told once."""
    report = lint_triton(KERNEL.format(use="tl.store(o_ptr + i, x)", other="", size=20).replace(", mask=i < n", ""))
    assert [d.code for d in report if d.severity == "error"] == ["KS501"]


MANY = """
@triton.jit
def kernel(x_ptr, y_ptr, o_ptr, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n{other})
    if tl.program_id(0) == 0:
        tl.store(o_ptr, tl.sum(x, 0))
    least = tl.min(x + y, 0)
    tl.store(o_ptr + i, least + x, mask=i < {bound})


kernel[(3,)](np.ones(13, np.float32), np.ones(13, np.float32), np.zeros(24, np.float32), 13, N=8)
"""


@pytest.mark.parametrize(
    ("other", "bound", "told"),
    [
        ("", 13, [(8, 13, 1), (9, 13, 1)]),
        (", other=0.0", 13, [(8, 13, 1)]),
        ("", 24, [(8, 13, 2), (9, 13, 2)]),
    ],
)
def test_a_load_is_told_of_once_in_each_program(lint_triton, other, bound, told):
    """Where it is used first, with both lines: what follows is mended with it. Of two loads each is told of."""
    found = lint_triton(MANY.format(other=other, bound=bound), select=["KS802"]).diagnostics
    assert [(d.locations[1].location.line, d.location.line) for d in found] == [(a, b) for a, b, _ in told]
    for finding, (load, _, programs) in zip(found, told, strict=True):
        assert f"the masked load in line {load}" in finding.message and f"in {programs} of 3" in finding.message


def test_a_program_that_uses_a_load_elsewhere_is_told_of_there(lint_triton):
    """One finding for each place where it comes first in some program."""
    text = MANY.format(other=", other=0.0", bound=13).replace(", 13, N=8", ", 5, N=8")
    found = lint_triton(text, select=["KS802"]).diagnostics
    assert [d.location.line for d in found] == [11, 13]
    assert "in 1 of 3 programs, first in program 0" in found[0].message
    assert "in 1 of 3 programs, first in program 1" in found[1].message


SHORT = """
@triton.jit
def kernel(x_ptr, o_ptr, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(o_ptr + i{more}, tl.load(x_ptr + i, mask=i < n))


kernel[(3,)](np.ones(20, np.float32), np.zeros(20, np.float32), 20, N=8)
"""


@pytest.mark.parametrize(("more", "codes"), [("", ["KS501"]), (" - 1", ["KS501", "KS802"])])
def test_what_is_stored_outside_is_told_as_that(lint_triton, more, codes):
    """Undefined elements that stay inside of the tensor are told of beside it; those that leave it are not."""
    found = lint_triton(SHORT.format(more=more), select=["KS501", "KS802"]).diagnostics
    assert sorted(d.code for d in found) == codes


THROUGH = """
@triton.jit
def kernel(x_ptr, o_ptr, n, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + i * N + j, mask={mask})
    {made}
    {use}


kernel[(1,)](np.ones(256, np.float32), np.zeros(256, np.float32), 5, N=16)
"""
ROWS, COLS = "tl.store(o_ptr + i * N + j, y, mask=i < n)", "tl.store(o_ptr + i * N + j, y, mask=j < n)"
LINE = "tl.store(o_ptr + tl.arange(0, N), y, mask=tl.arange(0, N) < n)"


@pytest.mark.parametrize(
    ("made", "rows", "cols"),
    [
        (
            "y = tl.dot(x, tl.trans(x) * 0 + 1.0 if False else tl.zeros((N, N), tl.float32))",
            (ROWS, False),
            (ROWS, True),
        ),
        ("y = tl.dot(tl.zeros((N, N), tl.float32), x)", (COLS, True), (COLS, False)),
        ("y = tl.dot(tl.zeros((N, N), tl.float32), tl.zeros((N, N), tl.float32), x)", (ROWS, False), (COLS, False)),
        ("y = tl.sum(x, 1)", (LINE, False), (LINE, True)),
        ("y = tl.max(x, 0)", (LINE, True), (LINE, False)),
        ("y = tl.argmin(x, 1)", (LINE, False), (LINE, True)),
        ("y = tl.cumsum(x, 1)", (ROWS, False), (COLS, False)),
        ("y = tl.cumsum(x, 0)", (ROWS, False), (COLS, False)),
        ("y = tl.cumsum(x, 1, reverse=True)", (ROWS, False), (COLS, True)),
        ("y = tl.sort(x)", (ROWS, False), (COLS, True)),
        ("y = x.to(tl.int32, bitcast=True).to(tl.float32, bitcast=True)", (ROWS, False), (COLS, False)),
        ("y = tl.histogram(tl.ravel(x).to(tl.int32), N)", (LINE, True), (LINE, True)),
        ("y = tl.histogram(tl.ravel(x).to(tl.int32), N, mask=tl.ravel(i + j * 0) < n)", (LINE, False), (LINE, True)),
        ("y = tl.flip(x, 1)", (ROWS, False), (COLS, True)),
        ("y = tl.gather(x, tl.zeros((N, N), tl.int32) + j // 4, 1)", (ROWS, False), (COLS, False)),
        ("y = tl.gather(x, tl.zeros((N, N), tl.int32) + 15 - j, 1)", (ROWS, False), (COLS, True)),
        (
            "y = tl.associative_scan(x, 1, tl.maximum) if False else tl.reshape(tl.trans(tl.trans(x)), (N, N))",
            (ROWS, False),
            (COLS, False),
        ),
    ],
)
@pytest.mark.parametrize("which", ["rows", "cols"])
def test_undefined_elements_are_followed_one_by_one(lint_triton, made, rows, cols, which):
    """Rows that are masked off stay rows through what works along the other axis: that such a row is computed, and
    masked off again, is no fault. What an undefined element goes into is undefined."""
    use, fires = {"rows": rows, "cols": cols}[which]
    mask = {"rows": "i < n", "cols": "j < n"}[which]
    found = lint_triton(THROUGH.format(mask=mask, made=made, use=use), select=["KS802"]).diagnostics
    assert [d.location.line for d in found] == ([10] if fires else [])


def test_a_branch_on_what_is_undefined_is_a_use(lint_triton):
    """Which way it goes is chance."""
    text = THROUGH.format(
        mask="j < n", made="y = tl.sum(tl.sum(x, 1), 0)", use="if y > 0:\n        tl.store(o_ptr, 1.0)"
    )
    (found,) = lint_triton(text, select=["KS802"]).diagnostics
    assert found.message.startswith("a branch uses what the masked load in line 8 leaves undefined")
    assert found.location.line == 10
