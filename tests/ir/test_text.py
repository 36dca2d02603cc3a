"""The text form: one line a node, the same everywhere, whatever things are called."""

import os
from typing import Any

import pytest

import kernscope as ks
from kernscope import tl


def softmax(x: Any, o: Any) -> None:
    tile = tl.load(x[0:4, :])
    total = tl.zeros((4, 1), "f32")
    with tl.scratch_scope("rows"):
        e = tl.exp(tile - 0.5)
        tl.copy_to(total, tl.sum(e, axis=1, keep_dims=True))
        tl.store(o[0:4, 0:8], tile[:, 0:8] / total)


GOLDEN = """\
kernel softmax ranks=1
target scratch=1048576 align=16 topology=ring slots=2
hbm x f32[8,16]
hbm o f32[8,16]
rank 0
  %0 = load x+0 f32[4,16] -> tile@0x0 f32[4,16]  # {0}
  %1 = fill {{shape=(4,1), value=0, dtype=f32}} -> total@0x100 f32[4,1]  # {1}
  %2 = scope_enter rows cursor=272  # {2}
    %3 = sub tile@0x0 f32[4,16] {{scalars=((1,0.5))}} -> #4@0x110 f32[4,16]  # {3}
    %4 = exp #4@0x110 f32[4,16] -> e@0x210 f32[4,16]  # {3}
    %5 = sum e@0x210 f32[4,16] {{axis=1, keep_dims=True}} -> #6@0x310 f32[4,1]  # {4}
    %6 = copy_to #6@0x310 f32[4,1] -> total@0x100 f32[4,1]  # {4}
    %7 = div tile@0x0 f32[4,8] strides (16,1) of f32[4,16], total@0x100 f32[4,1] -> #7@0x320 f32[4,8]  # {5}
    %8 = store #7@0x320 f32[4,8] -> o+0 f32[4,8] strides (16,1)  # {5}
  %9 = scope_exit rows cursor=272  # {2}
"""


def test_the_text_of_a_small_kernel() -> None:
    """Kernel, target, tensors, then each node: operands, static values, result, place; scopes indent."""
    first = softmax.__code__.co_firstlineno
    text = str(ks.trace(softmax, ks.hbm((8, 16), "f32"), ks.hbm((8, 16), "f32")))
    assert text == GOLDEN.format(*(f"test_text.py:{first + n}" for n in range(1, 7)))


def test_every_rank_has_its_part() -> None:
    """Directions are named at sends and receives, and each rank's nodes stand under its number."""

    def kernel(x: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send("next", tl.load(x))
        else:
            got = tl.recv("prev", (4,), "f32")
            tl.exp(got)

    lines = str(ks.trace(kernel, ks.hbm((4,), "f32"), ranks=2)).splitlines()
    assert lines[0].endswith("ranks=2")
    zero, one = lines.index("rank 0"), lines.index("rank 1")
    assert lines[zero + 2].strip().startswith("%1 = send next ")
    assert lines[one + 1].strip().startswith("%2 = recv prev {shape=(4), dtype=f32} -> got@0x0 f32[4]")


def test_the_text_is_the_same_each_time() -> None:
    """Nothing of this process is in it: no id, no address, no folder."""
    graph = ks.trace(softmax, ks.hbm((8, 16), "f32"), ks.hbm((8, 16), "f32"))
    again = ks.trace(softmax, ks.hbm((8, 16), "f32"), ks.hbm((8, 16), "f32"))
    assert str(graph) == str(again)
    assert os.path.dirname(os.path.abspath(__file__)) not in str(graph)
    assert os.sep + "tests" not in str(graph)


@pytest.mark.parametrize("name", ["a\nb", "a\rb", "a\x00b", "a\x1b[31mb", "a\u2028b", "a\u202eb"])
def test_hostile_names_stay_on_their_line(name: str) -> None:
    """Scope names are the author's strings: line breaks, escapes and invisible characters are written out."""

    def kernel(x: Any) -> None:
        with tl.scratch_scope(name):
            tl.exp(tl.load(x))

    text = str(ks.trace(kernel, ks.hbm((4,), "f32")))
    assert len(text.splitlines()) == 8
    assert all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize("name", ["a::b", "<w>", '"q"', "größe", "타일", "a b"])
def test_printable_names_stay_as_they_are(name: str) -> None:
    """Any language and any punctuation (but for the backslash, which escapes)."""

    def kernel(x: Any) -> None:
        with tl.scratch_scope(name):
            tl.exp(tl.load(x))

    assert f"scope_enter {name} cursor=0" in str(ks.trace(kernel, ks.hbm((4,), "f32")))


def test_a_node_and_an_access_print_alone() -> None:
    """`str(node)` is its line, `str(access)` its operand."""
    graph = ks.trace(softmax, ks.hbm((8, 16), "f32"), ks.hbm((8, 16), "f32"))
    assert str(graph[0]).startswith("%0 = load x+0 f32[4,16] -> tile@0x0 f32[4,16]  # test_text.py:")
    assert str(graph[0].reads[0]) == "x+0 f32[4,16]"


def test_different_names_print_differently() -> None:
    """A line break is written out as backslash and n; a name that is spelt with these two has its backslash doubled.
    The same holds for a name that holds both, and for letters that are only printable to some."""
    names = ["a\nb", "a\\nb", "a\\\nb", "a\\\\nb", "a\\", "a", "\\u00e9\n", "\u00e9\n", "\u00e9", "\\xe9"]

    def kernel(x: Any) -> None:
        for name in names:
            with tl.scratch_scope(name):
                tl.exp(tl.load(x))

    lines = str(ks.trace(kernel, ks.hbm((4,), "f32"))).splitlines()
    shown = [line.split("scope_enter ")[1].split(" cursor=")[0] for line in lines if "scope_enter" in line]
    assert len(set(shown)) == len(names)
    assert shown[0] == "a\\nb" and shown[1] == "a\\\\nb"
