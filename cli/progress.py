"""A progress bar on the terminal. Loaded only where there is one: rich takes its time to import."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["LaunchProgress"]


class LaunchProgress:
    """How many launches (or other things) are done, of how many known so far; on stderr, and gone when it is done."""

    def __init__(self, doing: str, *, no_color: bool = False) -> None:
        self._bar = Progress(
            TextColumn(doing),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[last]}", markup=False),
            console=Console(stderr=True, no_color=no_color or None),
            transient=True,
        )
        self._task = self._bar.add_task("", total=None, last="")

    def __call__(self, done: int, total: int, last: str) -> None:
        """Show a state; ``last`` is what was finished last."""
        self._bar.update(self._task, completed=done, total=total, last=last)

    def __enter__(self) -> LaunchProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
