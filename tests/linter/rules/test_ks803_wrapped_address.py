"""KS803: integers of 32 bits that wrap around on their way to an address."""

from __future__ import annotations

import pytest

KERNEL = """
@triton.jit
def offset_of(row, stride):
    return row * stride


@triton.jit
def kernel(x_ptr, o_ptr, stride, N: tl.constexpr):
    row = tl.program_id(0){cast}
    at = offset_of(row, stride){after} + tl.arange(0, N)
    tl.store(o_ptr + at, tl.load(x_ptr + at))


kernel[({programs},)](np.ones(96, np.float32), np.zeros(96, np.float32), {stride}, N=8)
"""


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"stride": 2**30 + 8, "programs": 5, "after": " % 64"}, 2),
        ({"stride": 2**30 + 8, "programs": 2, "after": " % 64"}, None),
        ({"stride": 2**30 + 8, "programs": 5, "after": " % 64", "cast": ".to(tl.int64)"}, None),
        ({"stride": 8, "programs": 5}, None),
        ({"stride": 2**30, "programs": 2, "after": " * 4"}, 1),
    ],
)
def test_what_fires_and_what_does_not(lint_triton, options, first):
    """The programs in which it wraps, wherever that leads; both lines, the product's through the function it is in."""
    given = {"cast": "", "after": "", **options}
    found = lint_triton(KERNEL.format(**given), select=["KS8", "KS501"]).diagnostics
    if first is None:
        assert not found
        return
    assert [d.code for d in found] == ["KS803", "KS803"]
    assert all(f"first in program {first}" in d.message for d in found)
    assert {d.location.line for d in found} == {14}
    assert {d.locations[1].location.line for d in found} == {7 if first == 2 else 13}


@pytest.mark.parametrize("options", [{"select": ["KS501"]}, {"ignore": ["KS803"]}])
def test_where_wrapped_addresses_go_is_told_where_the_rule_is_not_asked(lint_triton, options):
    """What follows from a wrapped address is no finding beside it, and is one without it."""
    text = KERNEL.format(cast="", after="", stride=2**30, programs=4)
    assert {d.code for d in lint_triton(text)} == {"KS501", "KS803"}
    found = [d for d in lint_triton(text, **options) if d.code == "KS501"]
    assert {d.location.line for d in found} == {14} and len(found) == 2
    assert all("3 of 4 programs" in d.message and "program 1" in d.message for d in found)


MEETING = """
@triton.jit
def kernel(o_ptr, stride, N: tl.constexpr):
    row = tl.program_id(0)
    at = (row // 2) * stride
    tl.store(o_ptr + at + tl.arange(0, N), row.to(tl.float32))


kernel[({programs},)](np.zeros(96, np.float32), {stride}, N=8)
"""


@pytest.mark.parametrize(("programs", "races"), [(1, False), (2, True), (5, True), (6, True)])
def test_what_other_programs_do_at_that_line_is_told(lint_triton, programs, races):
    """Programs 4 and 5 come to an address that wrapped around: that they meet there is no finding. Programs 0 and 1
    meet without it, 2 and 3 outside."""
    found = lint_triton(MEETING.format(programs=programs, stride=2**30)).diagnostics
    codes = {d.code: d for d in found}
    assert ("KS801" in codes) == races
    assert ("KS501" in codes) == (programs > 2) and ("KS803" in codes) == (programs > 4)
    if races:
        assert "program 0 writes element 0 of `o_ptr`, which program 1 writes" in codes["KS801"].message
    if programs > 2:
        assert "2 of " in codes["KS501"].message


CHOSEN = """
@triton.jit
def kernel(x_ptr, o_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    far = tl.program_id(0) * n
    at = tl.where(i < 4, x_ptr + far, x_ptr + i)
    tl.store(o_ptr + i, tl.load(at, mask=i < 2, other=0.0))


kernel[(3,)](np.ones(96, np.float32), np.zeros(96, np.float32), {n}, N=8)
"""


@pytest.mark.parametrize(("n", "fires"), [(2**30, True), (8, False)])
def test_a_choice_among_pointers_remembers_what_wrapped(lint_triton, n, fires):
    """As an offset that is added does."""
    found = lint_triton(CHOSEN.format(n=n), select=["KS803"]).diagnostics
    assert [d.location.line for d in found] == ([10] if fires else [])


APART = """
@triton.jit
def kernel(x_ptr, o_ptr, base, N: tl.constexpr):
    i = tl.arange(0, N)
    table = tl.load(x_ptr + i)
    at = base + {sum}
    tl.store(o_ptr + at * 0 + i, table)


kernel[(2,)](np.ones(64, np.float32), np.zeros(64, np.float32), 2**30, N=64)
"""


@pytest.mark.parametrize(
    ("sum", "fires"),
    [
        ("i * 2**24 - i * 2**24", False),
        ("(i * 2**24 + tl.arange(0, N)) - (i * 2**24 + i)", False),
        ("i * 2**24 + (i - 63) * 2**22 - i * 2**22", False),
        ("i * 2**25", True),
    ],
)
def test_parts_that_make_up_for_one_another_do_not_wrap(lint_triton, sum, fires):
    """The bounds of a sum are not the sums of bounds where its parts lie along one axis."""
    found = lint_triton(APART.format(sum=sum), select=["KS803"]).diagnostics
    assert bool(found) == fires


ADDING = """
@triton.jit
def kernel(o_ptr, stride, N: tl.constexpr):
    row = tl.program_id(0)
    at = (row // 2) * stride
    tl.atomic_add(o_ptr + at + tl.arange(0, N), row.to(tl.float32))


kernel[({programs},)](np.zeros(96, np.float32), {stride}, N=8)
"""


@pytest.mark.parametrize(("programs", "first"), [(2, 0), (6, 0)])
def test_the_order_of_atomics_at_wrapped_addresses_is_no_finding_of_its_own(lint_triton, programs, first):
    """What programs that do not wrap add up is told, as are those that do where the rule is not asked."""
    text = ADDING.format(programs=programs, stride=2**30)
    found = {d.code: d.message for d in lint_triton(text, select=["KS803", "KS806"])}
    assert set(found) == ({"KS806", "KS803"} if programs > 4 else {"KS806"})
    assert f"programs {first} and 1 add" in found["KS806"] and "in 2 of" in found["KS806"]
    alone = lint_triton(text, select=["KS806"]).diagnostics
    assert [f"programs {first} and 1 add" in d.message for d in alone] == [True]
