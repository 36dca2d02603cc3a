"""How a report page names source files: relative to their project, so that a page says nothing of the machine it was
made on, and reads the same from any folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import PurePath

import attrs

from ...linter.source_places import shown_path

__all__ = ["PagePaths"]

#: What stands in the root of a project.
_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git", ".hg")
#: Where installed packages lie: a file there is named from its package on.
_INSTALLED = ("site-packages", "dist-packages")
#: The folders of an absolute path, of POSIX or Windows; the slashes of links, elements and of ``q/k/v`` are none.
_FOLDERS = re.compile(r"(?<![\w./~<:\\-])(?:[A-Za-z]:)?[\\/](?:[\w.+@~-]+[\\/])+(?=[\w.+@~-])")


def _project_path(file: str) -> str:
    """A file's path from the root of its project on, with ``/`` between the parts; its name alone where there is no
    project. What is no absolute path (a cell of a notebook, ``<string>``) stays as it is."""
    path = PurePath(file)
    if not path.is_absolute():
        return file
    installed = [at for at, part in enumerate(path.parts) if part in _INSTALLED]
    if installed:
        return "/".join(path.parts[installed[-1] + 1 :])
    for folder in path.parents:
        if any(os.path.exists(folder / marker) for marker in _MARKERS):
            return path.relative_to(folder).as_posix()
    return path.name


@attrs.frozen(eq=False, slots=False)
class PagePaths:
    """The names of some files on a page; ``by_file`` gives each file's."""

    by_file: Mapping[str, str]

    @classmethod
    def of(cls, files: Iterable[str]) -> PagePaths:
        return cls({file: _project_path(file) for file in dict.fromkeys(files)})

    def name(self, file: str) -> str:
        """What a page calls a file."""
        return self.by_file.get(file) or _project_path(file)

    def in_text(self, text: str) -> str:
        """A text (a finding, an error) in which the files are called so, and no folder of theirs is left. Where it has
        a file's path from the current folder, that is replaced, too."""
        return self._pattern.sub(lambda found: self._written[found[0]], text) if self._written else text

    def in_note(self, text: str) -> str:
        """The same of what other programs say (a renderer, a reference function): of any absolute path only the name is
        left."""
        return _FOLDERS.sub("", self.in_text(text))

    @cached_property
    def _written(self) -> dict[str, str]:
        """What may stand in a text, and what to write instead."""
        written: dict[str, str] = {}
        for file, name in self.by_file.items():
            if file == name:
                continue
            written |= {f"{shown_path(file)}:": f"{name}:", file: name}
            folder = file.removesuffix(name.replace("/", os.sep))
            if len(folder) > 1:
                written[folder] = ""
        return written

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self._written, key=lambda one: (-len(one), one))
        return re.compile(rf"(?<![\w./\\-])(?:{'|'.join(map(re.escape, longest_first))})")
