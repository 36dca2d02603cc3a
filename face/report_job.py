"""One launch (or file, to begin with) to report: a page of its own, and a row of the index."""

from __future__ import annotations

import os
import re
import zlib
from pathlib import Path
from typing import ClassVar

import attrs

from ..backends.report.index import IndexRow
from ..backends.report.page import write_report
from ..ir.graph import Graph
from ..ir.output import output_error
from ..linter.invocation import Invocation
from ..machine.description import Machine
from ..scheduler.result.loading import load
from ..scheduler.result.schedule import machine_of
from ..tracer.kernel import Launch
from . import presentation
from .guard.guard import Guard
from .invocations import launch_invocation
from .launch_job import LaunchJob
from .other_launches import guarded_watch
from .tracing import described_machine, trace_launch

__all__ = ["ReportJob"]


@attrs.frozen(kw_only=True)
class ReportJob(LaunchJob[IndexRow]):
    """What is to be reported, and how. Writes the launch's page below ``folder``, where its file lies below ``root``;
    its row comes back."""

    command: ClassVar[str] = "report"
    done: ClassVar[str] = "reported"

    folder: str
    root: str
    policies: tuple[str, ...]
    numbers: bool = True

    def __str__(self) -> str:
        source = self._below_root if self.target.is_file else self.target.source
        target = attrs.evolve(self.target, source=source)
        if self.launch is None:
            return str(target)
        kernel, launch = self.launch
        return f"{attrs.evolve(target, kernel=kernel)} ({launch})"

    def of_launch(self, launch: Launch, guard: Guard) -> IndexRow:
        """Trace the launch, schedule, lint and execute it, and write its page."""
        machine = described_machine(launch.machine if self.machine is None else self.machine, self.overrides)
        invocation = launch_invocation(launch, options=self.machine_words)
        graph = trace_launch(launch, machine, guard, record=True, observe=True, invocation=invocation)
        return self._written(graph, machine, guard.of_launch(launch), invocation, guard)

    def of_saved(self) -> IndexRow:
        """Report the saved graph."""
        graph = load(self.target.source)
        machine = described_machine(self.machine or machine_of(graph, None), self.overrides)
        return self._written(graph, machine)

    def _written(
        self,
        graph: Graph,
        machine: Machine,
        launch: Launch | None = None,
        invocation: Invocation | None = None,
        guard: Guard | None = None,
    ) -> IndexRow:
        data = presentation.gather(
            graph,
            machine,
            launch=launch,
            policies=self.policies,
            numbers=self.numbers,
            invocation=invocation,
            watch=guarded_watch(guard),
        )
        page = self._page()
        path = Path(self.folder, page)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise output_error(path.parent, error) from None
        write_report(path, data)
        return IndexRow.of(data, source=self._below_root if self.target.is_file else self.target.source, page=page)

    @property
    def _below_root(self) -> str:
        return os.path.relpath(self.target.source, self.root)

    def _page(self) -> str:
        """Where the page lies in the folder."""
        if self.target.is_file:
            source, extension = os.path.splitext(self._below_root)
        else:
            source, extension = self.target.source.replace(".", "/"), ""
        parts = [_plain(part) for part in Path(source).parts]
        names = [parts[-1], *map(_plain, self.launch or [extension.lstrip(".")])]
        return "/".join([*parts[:-1], ".".join([*names, "html"])])


def _plain(text: str) -> str:
    """A part of a file's name that says a text, and no other text."""
    plain = re.sub(r"[^0-9A-Za-z_-]", "_", text)
    return plain if plain == text else f"{plain}-{zlib.crc32(os.fsencode(text)):08x}"
