"""Which session is running, and what kernels, drivers and benchmarks ask of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import attrs

from ....ir.errors import KernscopeError, TritonSessionError

__all__ = ["Device", "LaunchRequest", "SessionState", "Trial", "current_session", "running_session"]


@attrs.frozen
class Device:
    """What a script is told of the machine, in the place of a GPU."""

    name: str
    processing_elements: int
    scratch_bytes: int
    clock_khz: int


@attrs.frozen(eq=False)
class LaunchRequest:
    """A kernel that is to be run for all programs of a grid. ``options`` are the launch's own words that are no
    parameters of the kernel (``num_stages``, ...), ``config`` the autotuner's choice, if there was one, ``addresses``
    the tensors whose address the script knows."""

    kernel: Any
    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    grid: tuple[int, int, int]
    options: Mapping[str, Any]
    config: Any = None
    addresses: Mapping[int, Any] = attrs.field(factory=dict)


@attrs.frozen(eq=False)
class Trial:
    """One configuration of an autotuned kernel that was tried: what came of it, or why the language refuses it.
    ``number`` counts the autotuned launches of a session."""

    number: int
    kernel: Any
    config: Any
    launch: Any
    refused: KernscopeError | None


@attrs.define(eq=False)
class SessionState:
    """What a session has been asked for and what came of it.

    ``run_launch`` runs a request. ``milliseconds`` is the time that a launch would take on the machine, ``fits``
    whether it has room in its scratch. ``configs`` says which configurations of an autotuned kernel are run, ``sweep``
    how many of a benchmark's sizes.
    """

    device: Device
    run_launch: Callable[[LaunchRequest], Any]
    milliseconds: Callable[[Any], float]
    fits: Callable[[Any], bool]
    configs: Literal["first", "all"] = "first"
    sweep: Literal["first", "all", "none"] = "first"
    launches: list[Any] = attrs.field(factory=list)
    trials: list[Trial] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)
    #: Whether the script's tensors are on a GPU, which the machine stands for: ``driver.set_active_to_cpu`` says no.
    is_gpu_active: bool = True
    #: The configuration that an autotuner is launching.
    config: Any = None
    #: Weak references to tensors whose address the script has asked for, by that address: kernels may load it and go
    #: there.
    addresses: dict[int, Any] = attrs.field(factory=dict)
    _benchmarked: list[Any] | None = None
    _is_trying: bool = False

    def launch(self, request: LaunchRequest) -> Any:
        """Run a request."""
        launch = self.run_launch(request)
        if not self._is_trying:
            self.launches.append(launch)
        if self._benchmarked is not None:
            self._benchmarked.append(launch)
        return launch

    def discard(self, launch: Any) -> None:
        """Forget a launch, whose effects have been undone."""
        self.launches.remove(launch)

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Launches are tried: they are none of the script's own."""
        self._is_trying = True
        try:
            yield
        finally:
            self._is_trying = False

    @contextmanager
    def benchmarking(self) -> Iterator[list[Any]]:
        """The launches that are made in the block."""
        outer, self._benchmarked = self._benchmarked, []
        try:
            yield self._benchmarked
        finally:
            inner, self._benchmarked = self._benchmarked, outer
            if outer is not None:
                outer += inner

    def note(self, text: str) -> None:
        """Say something once, at the end."""
        if text not in self.notes:
            self.notes.append(text)


#: The session that is running: one in a process, as ``sys.modules`` is, whichever thread asks.
_RUNNING: list[SessionState] = []


def current_session() -> SessionState:
    """The session that is running. Raises ``TritonSessionError`` where there is none."""
    if not _RUNNING:
        raise TritonSessionError(
            "a Triton kernel was launched outside a session",
            help="with ks.triton.session() as session: ..., or on the command line: kernscope triton SCRIPT",
        )
    return _RUNNING[0]


@contextmanager
def running_session(state: SessionState) -> Iterator[None]:
    """Make a session the current one. Raises ``TritonSessionError`` within another one."""
    if _RUNNING:
        raise TritonSessionError("a session is running already", help="end it first: leave its `with` block")
    _RUNNING.append(state)
    try:
        yield
    finally:
        _RUNNING.clear()
