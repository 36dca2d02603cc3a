"""What a process that examines points is asked, as data that can be sent anywhere: all values are texts, as on the
command line."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import attrs

from ...ir.errors import KernelFileError
from ..lint_files import python_files
from ..targets import Target

__all__ = ["Request", "Sources", "sources_of"]

#: The files of a kernel that are sent along: what is more is no kernel's folder.
_MOST_FILES, _MOST_BYTES = 500, 8 << 20
_RELATIVE = re.compile(rb"^\s*from\s+\.", re.MULTILINE)


@attrs.frozen
class Sources:
    """A kernel's file (``main``, a relative path) and those that it may import, by relative path."""

    main: str
    files: Mapping[str, bytes]

    @property
    def digest(self) -> str:
        """Of all names and contents."""
        known = hashlib.sha256(self.main.encode())
        for name, content in sorted(self.files.items()):
            known.update(f"\0{name}\0{len(content)}\0".encode() + content)
        return known.hexdigest()

    def expect_sendable(self) -> None:
        """Raise ``KernelFileError`` where these are too many to be sent with every point."""
        if len(self.files) > _MOST_FILES or sum(map(len, self.files.values())) > _MOST_BYTES:
            raise KernelFileError(
                f"{len(self.files):,} Python files lie beside {self.main} and below: too much to send with every point",
                help="put the kernel, and what it imports, into a folder of its own",
            )


def sources_of(file: str) -> Sources:
    """The Python files of a kernel's folder and below it; where one of these imports relatively, those of the outermost
    package that the folder is in."""
    path = Path(file).resolve()
    found = [path, *(one.resolve() for one in python_files(str(path.parent)))]
    root = path.parent
    if any(_RELATIVE.search(one.read_bytes()) for one in found):
        while (root / "__init__.py").exists() and root.parent != root:
            package, root = root, root.parent
            found = [path, *(one.resolve() for one in python_files(str(package)))]
    # What a link leads to elsewhere stays there.
    files = {str(one.relative_to(root)): one.read_bytes() for one in found if one.is_relative_to(root)}
    return Sources(str(path.relative_to(root)), files)


@attrs.frozen
class Request:
    """A kernel and what holds for all points: the options of the command line."""

    target: Target
    launch: str | None = None
    arguments: tuple[str, ...] = ()
    ranks: int | None = None
    grid: tuple[int, ...] = ()
    machine: str | None = None
    machine_toml: str | None = None
    overrides: tuple[str, ...] = ()
    policy: str = "list"
    effort: str = "fast"

    def to_json(self) -> str:
        """One line."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Request:
        """What :meth:`to_json` wrote."""
        data: dict[str, Any] = json.loads(text)
        data["target"] = Target(**data["target"])
        for name in ("arguments", "grid", "overrides"):
            data[name] = tuple(data[name])
        return cls(**data)

    def digest(self, sources: Sources | None) -> str:
        """Of everything on which a row depends besides its point."""
        told = self.to_json() + (sources.digest if sources is not None else "") + metadata.version("kernscope")
        return hashlib.sha256(told.encode()).hexdigest()
