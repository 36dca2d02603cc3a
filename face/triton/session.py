"""A session: ``triton`` and ``torch.cuda`` are stood in for, and what kernels do is kept."""

from __future__ import annotations

import contextlib
import math
from types import TracebackType
from typing import Any, Literal

from ...ir.errors import OptionError, shown
from ...machine.description import DEFAULT_MACHINE, Machine, load_machine
from ...tracer.triton.host.modules import standing_in
from ...tracer.triton.host.session_state import Device, LaunchRequest, SessionState, Trial, running_session
from ...tracer.triton.host.torch_device import torch_on_cpu
from ...tracer.triton.launching import Launch, LaunchOptions, launch
from ...tracer.triton.sampling import ProgramSample
from .launches import LaunchResult

__all__ = ["DEFAULT_PROCESSING_ELEMENTS", "Session", "session"]

#: What a machine whose topology has no shape is taken to have.
DEFAULT_PROCESSING_ELEMENTS = 32
_SAMPLED = (
    "only a sample of the programs was run ({}): the others are not judged, what they would store is missing, and the "
    "script's own asserts may fail of that"
)


class Session:
    """Made by :func:`session`; entered with ``with``. ``launches`` are all launches that were made inside, ``notes``
    what is to be said besides."""

    def __init__(
        self,
        machine: Machine,
        processing_elements: int,
        configs: Literal["first", "all"],
        sweep: Literal["first", "all", "none"],
        programs: ProgramSample | None = None,
    ) -> None:
        self.machine = machine
        self.programs = programs
        self.processing_elements = processing_elements
        self._results: dict[int, LaunchResult] = {}
        self._leaving = contextlib.ExitStack()
        self.state = SessionState(
            device=Device(
                name=machine.name,
                processing_elements=processing_elements,
                scratch_bytes=machine.target.memories[machine.target.results_memory].bytes,
                clock_khz=int(machine.clock_ghz * 1_000_000),
            ),
            run_launch=self._run,
            milliseconds=lambda launch: self._result(launch).makespan_ps / 1e9,
            fits=lambda launch: self._result(launch).fits,
            configs=configs,
            sweep=sweep,
        )

    def _run(self, request: LaunchRequest) -> Launch:
        options = LaunchOptions(
            machine=self.machine.name,
            machine_toml=self.machine.to_toml(),
            kernel=request.kernel.fn.__name__,
            num_stages=int(request.options.get("num_stages") or 1),
            addresses=request.addresses,
            programs=self.programs,
        )
        made = launch(request.function, request.arguments, request.grid, target=self.machine.target, options=options)
        if made.programs_run < made.programs:
            assert self.programs is not None
            self.state.note(_SAMPLED.format(self.programs.text))
        number = len(self._results) + 1
        self._results[id(made)] = LaunchResult.of(request, made, number, self.machine, self.processing_elements)
        return made

    def _result(self, launch: Any) -> LaunchResult:
        return self._results[id(launch)]

    @property
    def launches(self) -> tuple[LaunchResult, ...]:
        """The script's launches, in their order."""
        return tuple(self._result(launch) for launch in self.state.launches)

    @property
    def trials(self) -> tuple[tuple[Trial, LaunchResult | None], ...]:
        """The configurations that were tried, and what came of each; None of one that the language refuses."""
        return tuple((t, None if t.launch is None else self._result(t.launch)) for t in self.state.trials)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said besides: sizes of benchmarks left out, times that nobody knows."""
        return tuple(self.state.notes)

    def forget(self) -> None:
        """Let go of all launches so far, for long runs."""
        self.state.launches.clear()
        self.state.trials.clear()
        self._results.clear()

    def __enter__(self) -> Session:
        with contextlib.ExitStack() as entered:
            entered.enter_context(running_session(self.state))
            entered.enter_context(standing_in())
            entered.enter_context(torch_on_cpu(self.state))
            self._leaving = entered.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving.__exit__(kind, error, trace)


def session(
    machine: Any = None,
    *,
    processing_elements: int | None = None,
    configs: Literal["first", "all"] = "first",
    sweep: Literal["first", "all", "none"] = "first",
    programs: str | None = None,
) -> Session:
    """A session for unmodified Triton kernels, to be entered with ``with``.

    Inside, ``triton`` is stood in for, torch's ``cuda`` is the CPU, and every launch is run for all of its programs and
    kept. Afterwards, also after an error, everything is as it was before.

    ``machine`` (a name, a TOML file's path or a ``Machine``) is what the script is told in the place of a GPU, with
    ``processing_elements``: by default those of its topology's shape, else 32. ``configs="all"`` tries every
    configuration of an autotuned kernel, ``sweep`` says how many sizes of a benchmark are run. ``programs`` says which
    programs of each launch are run, by default all: ``"first,last,random:64"``, ``"first:8,731,1024-2047"``. What the
    others would do is not judged then, and not stored: a script's own asserts may fail.

    Raises ``OptionError`` for other values, ``MachineError`` for no machine, and ``TritonSessionError`` when it is
    entered within another one.
    """
    described = load_machine(DEFAULT_MACHINE if machine is None else machine)
    if processing_elements is None:
        shape = described.topology.shape
        processing_elements = math.prod(int(n) for n in shape) if shape else DEFAULT_PROCESSING_ELEMENTS
    if isinstance(processing_elements, bool) or not isinstance(processing_elements, int) or processing_elements < 1:
        raise OptionError(f"processing_elements={shown(processing_elements)}", help="it is a positive integer")
    for name, value, known in (("configs", configs, ("first", "all")), ("sweep", sweep, ("first", "all", "none"))):
        if value not in known:
            raise OptionError(f"{name}={shown(value)}", help=f"it can be: {', '.join(known)}")
    sample = None if programs is None else ProgramSample.of(programs)
    return Session(described, processing_elements, configs, sweep, sample)
