"""Whose frames a kernel's author sees."""

from __future__ import annotations

from pathlib import Path

import kernscope
from kernscope.frames import author_frames, is_own_file

ROOT = Path(kernscope.__file__).resolve().parent


def test_every_module_of_the_root_is_kernscopes_own():
    """A module that is not listed would be shown to authors as their own code."""
    assert [path.name for path in ROOT.glob("*.py") if not is_own_file(str(path))] == []


def test_every_folder_but_the_kernels_is_kernscopes_own():
    """The kernels are written as a user would write them, and their lines are what a user wants to see."""
    folders = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name not in ("tests", "benchmarks")]
    assert [f.name for f in folders if not is_own_file(str(f / "__init__.py"))] == ["kernels"]
    assert not is_own_file(str(ROOT / "someones_kernel.py"))


def test_frames_of_an_error_are_the_authors():
    """What raises inside kernscope is blamed on the line that called it."""

    def author() -> None:
        kernscope.hbm((0,), "f32")

    try:
        author()
    except kernscope.ShapeError as error:
        frames = author_frames(error.__traceback__)
    assert [frame.name for frame in frames] == ["test_frames_of_an_error_are_the_authors", "author"]
