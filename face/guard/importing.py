"""Importing a kernel's file or module, as Python itself would run it."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import re
import sys
import zlib
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from ...ir.errors import KernelFileError, KernscopeError, did_you_mean, raised
from ...ir.source.frames import author_place, is_author_file
from ...ir.source.location import Location, shown_path
from .guard import Guard

__all__ = ["import_file", "import_module"]


def import_file(path: str, guard: Guard) -> ModuleType:
    """A file's module, its neighbours importable as for ``python file.py``. One that imports relatively is a module of
    its package, as for ``python -m``: of the folders above it that have an ``__init__.py``, and of as many without one
    as its imports name. Raises ``KernelFileError``."""
    file = Path(path)
    if not file.exists():
        if file.is_symlink():
            raise KernelFileError(
                f"{path!r} is a link to {os.readlink(file)!r}, and nothing is there", help="give the file itself"
            )
        near = [p.name for p in file.parent.glob("*.py")] if file.parent.is_dir() else []
        raise KernelFileError(f"no file {path!r}", help=did_you_mean(file.name, sorted(near), what="files there"))
    if file.is_dir():
        raise KernelFileError(f"{path!r} is a folder", help="name one file: path/file.py")
    if file.suffix != ".py":
        raise KernelFileError(
            f"{path!r} is no Python file", help="give a kernel file, *.py, or a graph saved by kernscope trace -o"
        )
    if not file.is_file():
        raise KernelFileError(
            f"{path!r} is no regular file", help="write what comes from there to a file: path/file.py"
        )
    resolved = file.resolve()  # before the author's code can change the folder
    levels = _relative_levels(resolved)
    with guard.running(f"importing {path}", lambda error: _import_failure(shown_path(path), error, resolved)):
        try:
            return _import_from_package(resolved, levels) if levels else _import_alone(resolved)
        except KernscopeError as error:
            error.at(_place_of(error))
            raise


def import_module(name: str, guard: Guard) -> ModuleType:
    """A module by its name; the current folder counts, as for ``python -m``. Raises ``KernelFileError``."""

    def failure(error: BaseException) -> KernelFileError:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(error.name + "."):
            return KernelFileError(
                f"no module {name!r}", help="give an importable module, or a file: path/file.py::kernel"
            )
        return _import_failure(name, error)

    with guard.running(f"importing {name}", failure):
        if "" not in sys.path and os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())
        try:
            return importlib.import_module(name)
        except KernscopeError as error:
            error.at(_place_of(error))
            raise


def _import_alone(file: Path) -> ModuleType:
    sys.path.insert(0, str(file.parent))
    return _load(f"kernscope_target_{_identifier(file.stem)}", file)


def _load(name: str, file: Path, folder: Path | None = None) -> ModuleType:
    """Execute a file as the module ``name``; with a ``folder``, as the package of what is in it."""
    specification = importlib.util.spec_from_file_location(
        name, file, submodule_search_locations=None if folder is None else [str(folder)]
    )
    assert specification is not None and specification.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _relative_levels(file: Path) -> int:
    """How many folders up a file imports from at most (``from .tiles import load_tile``: 1); 0 if from none."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return 0  # importing it will say what is wrong
    return max((node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)), default=0)


def _import_from_package(file: Path, levels: int) -> ModuleType:
    is_package = file.name == "__init__.py"
    parts = [] if is_package else [file.stem]
    least = levels if is_package else levels + 1
    folder = file.parent
    while ((folder / "__init__.py").is_file() or len(parts) < least) and folder != folder.parent:
        parts.insert(0, folder.name)
        folder = folder.parent
    sys.path.insert(0, str(folder))
    if not _leads_to(parts[0], folder / parts[0]):
        # Another package has the name (`test`, or a folder of another project): this one gets a name of its own.
        sys.path.remove(str(folder))
        sys.path.insert(0, str(file.parent))
        parts[0] = _package_of_its_own(folder / parts[0])
    return importlib.import_module(".".join(parts))


def _leads_to(name: str, folder: Path) -> bool:
    """Whether importing a top-level name leads to that very folder."""
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    places = (found.submodule_search_locations if found is not None else None) or ()
    return any(os.path.realpath(place) == str(folder) for place in places)


def _package_of_its_own(folder: Path) -> str:
    name = f"kernscope_target_{_identifier(folder.name)}_{zlib.crc32(os.fsencode(folder)):08x}"
    if name in sys.modules:
        return name
    first = folder / "__init__.py"
    if first.is_file():
        _load(name, first, folder)
        return name
    specification = ModuleSpec(name, None, is_package=True)
    specification.submodule_search_locations = [str(folder)]
    sys.modules[name] = importlib.util.module_from_spec(specification)
    return name


def _identifier(text: str) -> str:
    return re.sub(r"[^0-9a-zA-Z_]", "_", text)


def _import_failure(source: str, error: BaseException, file: Path | None = None) -> KernelFileError:
    place = _place_of(error)
    if place is None and file is not None and isinstance(error, SyntaxError):
        place = Location(str(file), _line_of_null(file))  # Python says neither file nor line
    places = [("here", place)] if place else []
    what = f"{type(error).__name__}: {error.msg}" if isinstance(error, SyntaxError) else raised(error)
    missing = (error.name or "") if isinstance(error, ImportError) else ""
    help = "the file must import without errors; run it with python"
    if missing.partition(".")[0] == "triton":
        help = f"a script of Triton kernels is run by another command: kernscope triton {source}"
    return KernelFileError(f"cannot import {source}: {what}", help=help, places=places)


def _line_of_null(file: Path) -> int:
    """The line of a file's first null byte, which no line of Python can hold; the first one where it has none."""
    return file.read_bytes().partition(b"\0")[0].count(b"\n") + 1


def _place_of(error: BaseException) -> Location | None:
    if isinstance(error, SyntaxError) and error.filename and is_author_file(error.filename):
        return _place_of_syntax(error, error.filename)
    return author_place(error.__traceback__)


def _place_of_syntax(error: SyntaxError, file: str) -> Location:
    """Where a file is no Python. The error counts characters from 1, a location bytes from 0."""
    line, offset = error.lineno or 1, error.offset or 0
    before = (error.text or "")[: max(0, offset - 1)]
    if offset < 1 or not error.text:
        return Location(file, line)
    start = len(before.encode())
    ends_there = error.end_lineno == line and (error.end_offset or 0) > offset
    stop = len(error.text[: error.end_offset - 1].encode()) if ends_there and error.end_offset else start + 1
    return Location(file, line, column=start, end_line=line, end_column=stop)
