"""The rows of a sweep as they come, in a file: what was computed survives whatever ends the sweep."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO

import attrs

from ...ir.errors import OptionError
from ...ir.output import output_error
from .point import row_to_json
from .result import SweepRow

__all__ = ["Journal"]

_FORMAT = "kernscope-sweep"


def _key(point: Mapping[str, str]) -> str:
    return json.dumps(point, sort_keys=True)


class Journal:
    """A file of lines of JSON: what the rows depend on, then the rows. Opening it reads those that are there; each that
    is added is on the disk before the next one.

    Raises ``OptionError`` for a file that holds something else, or rows of another kernel or of other options;
    ``OutputError`` where it cannot be written.
    """

    def __init__(self, path: str, digest: str) -> None:
        self.path = path
        self._rows: dict[str, SweepRow] = {}
        try:
            kept = self._read(Path(path).read_bytes(), digest) if os.path.exists(path) else b""
            mode = "r+b" if os.path.exists(path) else "w+b"
            self._file: IO[bytes] = open(path, mode)  # noqa: SIM115  (closed by __exit__)
            # A line that was not written to its end is written over.
            self._file.truncate(len(kept))
            self._file.seek(len(kept))
        except OSError as problem:
            raise output_error(path, problem) from problem
        if not kept:
            self._write(json.dumps({"format": _FORMAT, "digest": digest}))

    def _read(self, content: bytes, digest: str) -> bytes:
        kept = content[: content.rfind(b"\n") + 1]
        lines = kept.splitlines()
        if not content.startswith(f'{{"format": "{_FORMAT}"'.encode()[: len(content)]):
            raise OptionError(f"{self.path} holds no rows of a sweep", help="name another file with --journal")
        try:
            head = json.loads(lines[0]) if lines else {"digest": digest}
            rows = [SweepRow(**json.loads(line)) for line in lines[1:]]
            known = {_key(row.point): row for row in rows}
        except (ValueError, TypeError) as problem:
            raise OptionError(
                f"{self.path} is damaged", help="delete it, or name another file with --journal"
            ) from problem
        if head.get("digest") != digest:
            raise OptionError(
                f"{self.path} holds rows of another kernel, or of other options",
                help="the kernel's file may have changed since; delete it, or name another file with --journal",
            )
        self._rows = known
        return kept

    def row(self, point: Mapping[str, str]) -> SweepRow | None:
        """The row of a point, if it is there. One that failed is there no more: it is tried again."""
        found = self._rows.get(_key(point))
        # The columns come in the order of the point that was asked for.
        return None if found is None or found.verdict == "failed" else attrs.evolve(found, point=dict(point))

    def add(self, row: SweepRow) -> None:
        """Keep a row."""
        self._rows[_key(row.point)] = row
        self._write(row_to_json(row))

    def _write(self, line: str) -> None:
        try:
            self._file.write(line.encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as problem:
            raise output_error(self.path, problem) from problem

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
