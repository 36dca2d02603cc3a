"""Running a script in a session, by the guarded way: as ``python SCRIPT ARGS`` would run it."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path

from ...ir.errors import KernelFileError, KernscopeError, ScriptFailedError, TritonNameError, did_you_mean, raised
from ...ir.source.frames import author_place, is_own_fault
from ..guard.guard import Guard
from ..user_errors import as_user_error
from .session import Session

__all__ = ["run_script"]


def run_script(path: str, guard: Guard, session: Session) -> None:
    """Run a script as ``__main__``, inside a session. It may end by ``sys.exit()``.

    Raises ``KernelFileError`` where there is no such script, ``ScriptFailedError`` for what it raises, and what kernels
    raise.
    """
    code = _compiled(path)
    try:
        with session, guard.running(f"running {path}", lambda error: _failure(path, error)), _as_main(path) as module:
            try:
                exec(code, module.__dict__)
            except SystemExit as leaving:
                if leaving.code not in (None, 0, False):
                    raise
    except KernscopeError as error:
        error.at(author_place(error.__traceback__))
        raise


def _compiled(path: str) -> types.CodeType:
    file = Path(path)
    if not file.is_file():
        near = [p.name for p in file.parent.glob("*.py")] if file.parent.is_dir() else []
        what = "is a folder" if file.is_dir() else "is no file"
        raise KernelFileError(f"{path!r} {what}", help=did_you_mean(file.name, sorted(near), what="files there"))
    try:
        return compile(file.read_bytes(), str(file.resolve()), "exec")
    except (SyntaxError, ValueError) as error:
        said = error.msg if isinstance(error, SyntaxError) else raised(error)
        raise KernelFileError(f"{path} is not Python: {said}", help="give a script: kernscope triton SCRIPT.py").at(
            author_place(error.__traceback__)
        ) from error


@contextlib.contextmanager
def _as_main(path: str) -> Iterator[types.ModuleType]:
    """The script's module in the place of ``__main__``, with its folder first on the path."""
    file = Path(path).resolve()
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=str(file), __builtins__=__builtins__)
    before = sys.modules.get("__main__")
    sys.modules["__main__"] = module
    sys.path.insert(0, str(file.parent))
    try:
        yield module
    finally:
        if before is not None:
            sys.modules["__main__"] = before


def _failure(path: str, error: BaseException) -> KernscopeError:
    place = author_place(error.__traceback__)
    if is_own_fault(error):
        return as_user_error(error).at(place)
    missing = error.name or "" if isinstance(error, ImportError) else ""
    if missing == "triton" or missing.startswith("triton."):
        return TritonNameError(
            f"{path}: kernscope knows no {error}",
            help="docs/triton.md lists what of Triton's package is stood in for",
        ).at(place)
    return ScriptFailedError(
        f"{path} raised {raised(error)}", help="the error is the script's own; --debug shows all frames"
    ).at(place)
