"""What of a process an author's code may change for itself, and not for us: it has its own whenever it runs."""

from __future__ import annotations

import contextlib
import os
import random
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np

__all__ = ["AuthorState"]


@attrs.frozen(eq=False)
class _State:
    """The process's state at one moment. ``folder`` is None where the current folder has been deleted."""

    folder: str | None
    arguments: list[str]
    module_path: list[str]
    module_finders: list[Any]
    recursion_limit: int
    environment: dict[str, str]
    warning_filters: list[Any]
    show_warning: Any
    float_errors: Any
    random: Any
    numpy_random: dict[str, Any]

    @classmethod
    def now(cls) -> _State:
        try:
            folder = os.getcwd()
        except OSError:
            folder = None
        return cls(
            folder=folder,
            arguments=list(sys.argv),
            module_path=list(sys.path),
            module_finders=list(sys.meta_path),
            recursion_limit=sys.getrecursionlimit(),
            environment=dict(os.environ),
            warning_filters=list(warnings.filters),
            show_warning=warnings.showwarning,
            float_errors=np.geterr(),
            random=random.getstate(),
            numpy_random=np.random.get_state(legacy=False),
        )

    def restore(self) -> None:
        if self.folder is not None:
            with contextlib.suppress(OSError):  # deleted meanwhile
                os.chdir(self.folder)
        sys.argv = list(self.arguments)
        sys.path[:] = self.module_path
        sys.meta_path[:] = self.module_finders
        with contextlib.suppress(RecursionError):  # theirs, and less than what is in use by now
            sys.setrecursionlimit(self.recursion_limit)
        if dict(os.environ) != self.environment:
            os.environ.clear()
            os.environ.update(self.environment)
        warnings.filters[:] = self.warning_filters  # type: ignore[index]  # a list, whatever typeshed says
        warnings.showwarning = self.show_warning
        with warnings.catch_warnings():
            pass  # leaving it tells Python that the filters are others
        np.seterr(**self.float_errors)
        random.setstate(self.random)
        np.random.set_state(self.numpy_random)


class AuthorState:
    """The state that one author's code runs in: ``sys.argv`` is ``[source, *arguments]``, the rest begins as ours, and
    what the code makes of it (a folder changed to, a path added, a seed, a filter of warnings) holds whenever it runs
    again."""

    def __init__(self, source: str, arguments: Sequence[str] = ()) -> None:
        self._arguments = [source, *arguments]
        self._theirs: _State | None = None

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Run with it; our own is back afterwards, however this ends."""
        ours = _State.now()
        if self._theirs is None:
            sys.argv = list(self._arguments)
        else:
            self._theirs.restore()
        try:
            yield
        finally:
            limit = sys.getrecursionlimit()
            sys.setrecursionlimit(max(limit, ours.recursion_limit))  # what follows may need more than theirs
            self._theirs = attrs.evolve(_State.now(), recursion_limit=limit)
            ours.restore()
