"""Which files the linter looks at: the paths given, folders walked, configurations found."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..ir.errors import KernelFileError
from ..linter.config import LintConfig, find_config
from ..linter.findings import Failure
from .targets import Target, split_target

__all__ = ["Configurations", "lint_targets", "may_hold_kernels", "python_files"]

#: Folders with files that are not the project's own, or copies of them.
_PASSED_OVER = frozenset({"__pycache__", "build", "dist", "node_modules", "site-packages"})


class Configurations:
    """The configurations of files, each folder's looked for once."""

    def __init__(self) -> None:
        self._of_folder: dict[str, LintConfig] = {}

    def of(self, source: str) -> LintConfig:
        """The configuration for a file; for a module, that of the current folder. Raises ``OptionError``."""
        folder = os.path.dirname(os.path.abspath(source)) if os.path.exists(source) else os.getcwd()
        if folder not in self._of_folder:
            self._of_folder[folder] = find_config(folder)
        return self._of_folder[folder]


def lint_targets(
    paths: Sequence[str], configurations: Configurations, notes: list[str], failures: list[Failure]
) -> Iterator[tuple[Target, bool]]:
    """The targets of the paths, in their order, folders in the order of their files' names; and whether the user named
    that very one. A file that cannot hold a kernel is not imported. What there is to say goes to ``notes``,
    paths that lead nowhere to ``failures``: they take nothing from the others.
    """
    seen: set[tuple[str, str | None]] = set()
    for text in paths:
        try:
            targets = list(_folder(text, configurations, notes)) if os.path.isdir(text) else [split_target(text)]
        except KernelFileError as error:
            failures.append(Failure.of(text, error))
            continue
        for target in targets:
            source = os.path.realpath(target.source) if target.is_file else target.source
            if (source, target.kernel) in seen:
                continue
            seen.add((source, target.kernel))
            named = not os.path.isdir(text)
            if _is_python_file(target) and not may_hold_kernels(target.source):
                notes += [f"{target}: no kernels"] if named else []
                continue
            yield target, named


def _is_python_file(target: Target) -> bool:
    return target.is_file and target.kernel is None and target.source.endswith(".py") and os.path.isfile(target.source)


def _folder(folder: str, configurations: Configurations, notes: list[str]) -> Iterator[Target]:
    files = list(python_files(folder))
    if not files:
        saved = list(files_below(folder, ".ksg"))
        if not saved:
            raise KernelFileError(
                f"no Python files and no saved graphs in {folder!r}", help="give a folder with kernels, or a file"
            )
        yield from (Target(str(file), None, True) for file in saved)
        return
    chosen = [file for file in files if not configurations.of(str(file)).excludes(str(file))]
    if not any(may_hold_kernels(str(file)) for file in chosen):
        notes.append(f"{folder}: no kernels")
    yield from (Target(str(file), None, True) for file in chosen)


def python_files(folder: str) -> Iterator[Path]:
    """The Python files of a folder and those below it, by name; without hidden ones and those of environments."""
    return files_below(folder, ".py")


def files_below(folder: str, suffix: str) -> Iterator[Path]:
    """The same of files whose names end otherwise."""
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_passed_over(Path(parent, name))]
        found += [Path(parent, name) for name in names if name.endswith(suffix) and not name.startswith(".")]
    yield from sorted(found)


def _is_passed_over(folder: Path) -> bool:
    return folder.name.startswith(".") or folder.name in _PASSED_OVER or (folder / "pyvenv.cfg").exists()


def may_hold_kernels(file: str) -> bool:
    """Whether a file's text mentions ``kernscope``, ``kernel`` or ``launch``: no other can make a kernel, with
    ``@ks.kernel`` or ``@ks.launch``, and importing it would only run what has nothing to do with the linter. A file
    that cannot be read counts as one that may, so that it is reported."""
    try:
        text = Path(file).read_bytes()
    except OSError:
        return True
    return any(word in text for word in (b"kernscope", b"kernel", b"launch"))
