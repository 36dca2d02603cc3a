"""Reading a task graph, by its file's ending and what stands in it."""

from __future__ import annotations

from pathlib import Path

from ...ir.errors import OptionError, TaskFileError
from .job_shop import is_taillard, read_job_shop, read_taillard
from .psplib import read_psplib
from .standard_task_graph import read_standard_task_graph
from .task_graph import TaskGraph

__all__ = ["FORMATS", "read_task_graph"]

#: By name: what a file of it is.
FORMATS = {
    "jsp": "a job shop, standard form or Taillard's",
    "stg": "a standard task graph",
    "sm": "a project of PSPLIB",
}
_ENDINGS = {".stg": "stg", ".sm": "sm"}
_LARGEST_FILE = 256 << 20


def read_task_graph(path: Path, format_: str | None = None, processors: int | None = None) -> TaskGraph:
    """The task graph of a file. ``format_``: one of ``FORMATS``; None: ``stg`` or ``sm`` where the file ends so, else
    ``jsp``. ``processors``: of a standard task graph, whose file does not say.

    Raises ``TaskFileError`` for what cannot be read, ``OptionError`` for processors where they do not belong.
    """
    chosen = format_ or _ENDINGS.get(path.suffix.lower(), "jsp")
    if chosen == "stg" and processors is None:
        raise OptionError("a standard task graph without --processors", help="say how many: --processors 4")
    if chosen != "stg" and processors is not None:
        raise OptionError(f"--processors for {FORMATS[chosen]}", help="leave it out: the file says what there is")
    lines = _lines(path, comments=chosen != "sm")
    if chosen == "stg":
        assert processors is not None, "seen above"
        return read_standard_task_graph(path.name, lines, processors)
    if chosen == "sm":
        return read_psplib(path.name, lines)
    return (read_taillard if is_taillard(lines) else read_job_shop)(path.name, lines)


def _lines(path: Path, *, comments: bool) -> list[tuple[int, str]]:
    """The lines that say something, with their numbers."""
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise TaskFileError(f"{path.name}: larger than {_LARGEST_FILE >> 20} MiB")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise TaskFileError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise TaskFileError(f"{path.name}: not a text file") from error
    rows = (
        (number, line.split("#", 1)[0] if comments else line) for number, line in enumerate(text.splitlines(), start=1)
    )
    return [(number, line) for number, line in rows if line.strip()]
