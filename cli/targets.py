"""Targets: from ``file.py::kernel`` or ``package.module:kernel`` to a launch, with the options that override it."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import attrs

from ..ir.errors import (
    KernelFileError,
    KernelNotFoundError,
    KernscopeError,
    OptionError,
    did_you_mean,
    raised,
)
from ..ir.frames import author_place, is_author_file
from ..ir.location import Location, shown_path
from ..tracer.kernel import Kernel, Launch, hbm

__all__ = [
    "Target",
    "find_kernels",
    "parse_arguments",
    "resolve_launch",
    "split_target",
]

_TENSOR = re.compile(r"(?P<dtype>[a-z]+[0-9a-z]*)\[(?P<shape>\s*\d+\s*(,\s*\d+\s*)*)\]")


@attrs.frozen
class Target:
    """A file or module, and the kernel's name in it (None: the only one)."""

    source: str
    kernel: str | None
    is_file: bool

    def __str__(self) -> str:
        joint = "::" if self.is_file else ":"
        source = shown_path(self.source) if self.is_file else self.source
        return source if self.kernel is None else f"{source}{joint}{self.kernel}"


def split_target(text: str) -> Target:
    """Split a target's text. A path wins where it exists; ``module:kernel`` is anything else without a path in it."""
    source, joint, kernel = text.partition("::")
    if joint or source.endswith(".py") or os.path.exists(source):
        return Target(source, kernel or None, True)
    module, _, kernel = text.partition(":")
    if not all(part.isidentifier() for part in module.split(".")):
        raise KernelFileError(
            f"no file {text!r}", help="give path/file.py, path/file.py::kernel, or package.module:kernel"
        )
    return Target(module, kernel or None, False)


def find_kernels(target: Target) -> dict[str, Kernel]:
    """Import the target's file or module; its kernels by name, in the order they are written. Imported kernels do not
    count. With a kernel named, that one alone (a plain function will do)."""
    module = _import_file(target.source) if target.is_file else _import_module(target.source)
    own = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, Kernel) and value.function.__module__ == module.__name__
    }
    if target.kernel is None:
        return own
    found = own.get(target.kernel) or vars(module).get(target.kernel)
    if isinstance(found, Kernel):
        return {target.kernel: found}
    if callable(found) and not isinstance(found, type):
        return {target.kernel: Kernel(found)}
    raise KernelNotFoundError(
        f"{target.source} has no kernel {target.kernel!r}", help=did_you_mean(target.kernel, own, what="its kernels")
    )


def resolve_launch(
    text: str,
    *,
    launch: str | None = None,
    arguments: Sequence[str] = (),
    ranks: int | None = None,
    machine: Any = None,
) -> Launch:
    """The launch that a command works on: the target's one kernel, its default launch or the one named, with arguments,
    ranks and machine overridden."""
    target = split_target(text)
    kernels = find_kernels(target)
    if not kernels:
        raise KernelNotFoundError(
            f"{target.source} has no kernel", help="decorate one with @ks.kernel, or name a function: file.py::function"
        )
    if len(kernels) > 1:
        joint = "::" if target.is_file else ":"
        raise KernelNotFoundError(
            f"{target.source} has {len(kernels)} kernels: {', '.join(kernels)}",
            help=f"name one: {target.source}{joint}{next(iter(kernels))}",
        )
    (kernel,) = kernels.values()
    given = parse_arguments(arguments)
    unknown = [name for name in given if name not in kernel.signature.parameters]
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in kernel.signature.parameters.values()):
        raise OptionError(
            f"--arg {unknown[0]}: kernel {kernel.name} has no such parameter",
            help=did_you_mean(unknown[0], kernel.signature.parameters, what="parameters"),
        )
    if launch is None and not kernel.launches:
        base = Launch(kernel, "", MappingProxyType({}))
        if not given:
            kernel.launch()  # raises, and says what to do
    else:
        base = kernel.launch(launch)
    made = attrs.evolve(base, arguments=MappingProxyType({**base.arguments, **given}))
    return attrs.evolve(
        made,
        ranks=made.ranks if ranks is None else ranks,
        machine=made.machine if machine is None else machine,
    )


def parse_arguments(texts: Iterable[str]) -> dict[str, Any]:
    """``name=value`` options: a tensor (``q=f16[128,128]``) or a Python literal; a bare word is a string."""
    parsed: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise OptionError(f"--arg {text!r}", help="write name=value, such as tile=64 or q=f16[128,128]")
        if name in parsed:
            raise OptionError(f"--arg {name} is given twice", help="give each argument once")
        parsed[name] = _value(name, value.strip())
    return parsed


def _value(name: str, text: str) -> Any:
    tensor = _TENSOR.fullmatch(text)
    if tensor:
        return hbm(tuple(int(n) for n in tensor["shape"].split(",")), tensor["dtype"])
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        if text.isidentifier():
            return text
        raise OptionError(
            f"--arg {name}={text!r} is no Python literal and no tensor",
            help="write 64, 0.5, True, (1, 2) or f16[128,64]",
        ) from None


# --- importing ------------------------------------------------------------------------------------------------------


def _import_file(path: str) -> ModuleType:
    file = Path(path)
    if not file.exists():
        near = [p.name for p in file.parent.glob("*.py")] if file.parent.is_dir() else []
        raise KernelFileError(f"no file {path!r}", help=did_you_mean(file.name, sorted(near), what="files there"))
    if file.is_dir():
        raise KernelFileError(f"{path!r} is a folder", help="name one file: path/file.py")
    if file.suffix != ".py":
        raise KernelFileError(
            f"{path!r} is no Python file", help="give a kernel file, *.py, or a graph saved by kernscope trace -o"
        )
    resolved = file.resolve()
    if _imports_relatively(resolved):
        return _import_from_package(path, resolved)
    name = f"kernscope_target_{re.sub(r'[^0-9a-zA-Z_]', '_', resolved.stem)}"
    specification = importlib.util.spec_from_file_location(name, resolved)
    assert specification is not None and specification.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    sys.path.insert(0, str(resolved.parent))  # as `python file.py` does, so that its neighbours can be imported
    try:
        specification.loader.exec_module(module)
    except KernscopeError as error:
        error.at(_place_of(error))
        raise
    except (Exception, SystemExit) as error:
        raise _import_failure(shown_path(path), error) from error
    finally:
        sys.path.remove(str(resolved.parent))
    return module


def _imports_relatively(file: Path) -> bool:
    """Whether a file can only be imported as a module of its package (``from .tiles import load_tile``)."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return False  # importing it will say what is wrong
    return any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))


def _import_from_package(path: str, file: Path) -> ModuleType:
    """A file as a module of the package that it lies in: of the folders above it that have an ``__init__.py``."""
    parts = [] if file.name == "__init__.py" else [file.stem]
    folder = file.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(".".join(parts))
    except KernscopeError as error:
        error.at(_place_of(error))
        raise
    except (Exception, SystemExit) as error:
        raise _import_failure(shown_path(path), error) from error
    finally:
        sys.path.remove(str(folder))


def _import_module(name: str) -> ModuleType:
    here = os.getcwd()
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.insert(0, here)  # a console script does not see the current folder; `python -m` does
    try:
        return importlib.import_module(name)
    except KernscopeError as error:
        error.at(_place_of(error))
        raise
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            raise KernelFileError(
                f"no module {name!r}", help="give an importable module, or a file: path/file.py::kernel"
            ) from None
        raise _import_failure(name, error) from error
    except (Exception, SystemExit) as error:
        raise _import_failure(name, error) from error
    finally:
        if added:
            sys.path.remove(here)


def _import_failure(source: str, error: BaseException) -> KernelFileError:
    places = [("here", place)] if (place := _place_of(error)) else []
    what = f"{type(error).__name__}: {error.msg}" if isinstance(error, SyntaxError) else raised(error)
    return KernelFileError(
        f"cannot import {source}: {what}", help="the file must import without errors; run it with python", places=places
    )


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
