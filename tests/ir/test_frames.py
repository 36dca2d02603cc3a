"""Whose lines are blamed: the author's, whatever they called through."""

from __future__ import annotations

import argparse
import contextlib
import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.ir.source.frames import author_place, is_author_file
from kernscope.ir.source.location import Location

ROOT = Path(ks.__file__).resolve().parent
HERE = Path(__file__)


def test_every_module_of_the_root_is_kernscopes_own() -> None:
    """A module that is not listed would be shown to authors as their own code."""
    assert [path.name for path in ROOT.glob("*.py") if is_author_file(str(path))] == []


def test_every_folder_but_the_kernels_is_kernscopes_own() -> None:
    """The kernels are written as a user would write them, and their lines are what a user wants to see."""
    folders = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name not in ("tests", "benchmarks")]
    assert [f.name for f in folders if is_author_file(str(f / "__init__.py"))] == ["kernels"]
    assert is_author_file(str(ROOT / "someones_kernel.py"))


def test_libraries_are_not_the_authors_but_installed_packages_are() -> None:
    """numpy and Python's own modules only pass on what the author asked for; a package of kernels is an author's."""
    library = Path(argparse.__file__).parent
    assert not is_author_file(argparse.__file__) and not is_author_file(np.__file__)
    assert not is_author_file("<frozen importlib._bootstrap>")
    assert is_author_file(str(library / "site-packages" / "their_kernels" / "norms.py"))
    assert is_author_file("<ipython-input-3-1a2b3c>") and is_author_file("<stdin>")


def test_a_traceback_is_blamed_on_the_authors_innermost_line() -> None:
    """What raises inside kernscope is blamed on the line that called it, with its callers."""

    def author() -> None:
        ks.hbm((0,), "f32")

    with pytest.raises(ks.ShapeError) as caught:
        author()
    place = author_place(caught.value.__traceback__)
    assert place is not None
    assert [at.function for at in (place, *place.stack)] == [
        "author",
        "test_a_traceback_is_blamed_on_the_authors_innermost_line",
    ]
    source = HERE.read_text(encoding="utf-8").splitlines()[place.line - 1]
    assert source[place.column : place.end_column] == 'ks.hbm((0,), "f32")'


def in_numpy(x: ks.HbmTensor, o: ks.HbmTensor) -> None:
    tl.store(o[:], np.sum(tl.load(x[:])))  # blamed


def in_numpy_attribute(x: ks.HbmTensor, o: ks.HbmTensor) -> None:
    np.argsort(tl.load(x[:]))  # type: ignore[call-overload]  # blamed


def in_functools(x: ks.HbmTensor, o: ks.HbmTensor) -> None:
    @functools.singledispatch
    def add(h: object) -> object:
        raise AssertionError

    @add.register
    def _(h: ks.TensorHandle) -> object:
        return h.no_such_thing  # blamed

    add(tl.load(x[:]))


@pytest.mark.parametrize("kernel", [in_numpy, in_numpy_attribute, in_functools])
def test_an_error_is_at_the_authors_line(kernel: Callable[..., None]) -> None:
    """Also where a library's function lies between the line and kernscope."""
    with pytest.raises(ks.KernscopeError) as caught:
        ks.trace(kernel, x=ks.hbm((8,), "f32"), o=ks.hbm((1,), "f32"))
    ((_, place),) = caught.value.places
    assert place.file == __file__ and "# blamed" in HERE.read_text(encoding="utf-8").splitlines()[place.line - 1]


def test_a_node_is_at_the_authors_line() -> None:
    """A scope that a library enters is the author's: its line, and the name it is given."""

    def kernel(x: ks.HbmTensor, o: ks.HbmTensor) -> None:
        with contextlib.ExitStack() as stack:
            stack.enter_context(tl.scratch_scope())
            tl.store(o[:], tl.load(x[:]))

    graph = ks.trace(kernel, x=ks.hbm((8,), "f32"), o=ks.hbm((8,), "f32"))
    files = {frame.file for node in graph for frame in [node.location, *node.location.stack] if frame is not None}
    assert files == {__file__}


def test_a_place_is_shown_relative_to_the_current_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Below it, not beside it; what is no file stays as it is."""
    monkeypatch.chdir(tmp_path)
    assert str(Location(str(tmp_path / "kernels" / "a.py"), 3, "k")) == str(Path("kernels", "a.py")) + ":3 in k"
    assert str(Location(str(tmp_path.parent / "a.py"), 3)) == f"{tmp_path.parent / 'a.py'}:3"
    assert str(Location("<stdin>", 3)) == "<stdin>:3"


def test_a_place_knows_only_what_it_was_told() -> None:
    """A column that is not known is -1, and so are the ends."""
    place = Location("a.py", 3)
    assert (place.column, place.end_line, place.end_column) == (-1, -1, -1)
    assert (place.function, place.stack, place.callers_left_out, place.digest) == ("", (), 0, None)
