"""One launch (or file, to begin with) to do something with: what is asked, what comes back, and the way through."""

from __future__ import annotations

import contextlib
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, Generic, Literal, TypeVar

import attrs

from ..ir.forms.saved import is_saved_graph
from ..linter.findings import Failure
from ..tracer.kernel import Kernel, Launch
from .guard.guard import Guard
from .guard.time_limit import time_limit
from .invocations import machine_words
from .targets import Target, find_kernels
from .user_errors import as_user_error

__all__ = ["Found", "LaunchJob", "LaunchName", "Share", "perform"]

#: The kernel's name in its file, and the launch's.
LaunchName = tuple[str, str]
#: Which of the launches that a job finds it does itself: the first, the only one (of several none), or all.
Share = Literal["first", "only", "all"]
R = TypeVar("R")


@attrs.frozen(kw_only=True)
class LaunchJob(ABC, Generic[R]):
    """What is to be done: a target, one launch of it (None: find its launches and begin with the first), and how.

    ``only`` is the launch that the user asked for in every kernel. ``is_named``: the user gave this very file, and is
    told if there is nothing in it. Holds nothing that cannot be sent to another process.
    """

    #: The command, what it has done with a launch, and the options with which it does one in this process.
    command: ClassVar[str]
    done: ClassVar[str]
    alone: ClassVar[tuple[str, ...]] = ()

    target: Target
    launch: LaunchName | None = None
    only: str | None = None
    is_named: bool = True
    machine: str | None = None
    overrides: tuple[str, ...] = ()

    @abstractmethod
    def of_launch(self, launch: Launch, guard: Guard) -> R:
        """Do it with a launch."""

    @abstractmethod
    def of_saved(self) -> R:
        """Do it with the saved graph that the target is."""

    def __str__(self) -> str:
        if self.launch is None:
            return str(self.target)
        kernel, launch = self.launch
        return f"{attrs.evolve(self.target, kernel=kernel)} ({launch})"

    @property
    def command_alone(self) -> str:
        """The command that does this job alone and without a process of its own, for a shell."""
        kernel, launch = self.launch or (self.target.kernel, self.only)
        words = ["kernscope", self.command, *self.alone, str(attrs.evolve(self.target, kernel=kernel))]
        return shlex.join([*words, "--launch", launch] if launch is not None else words)

    @property
    def machine_words(self) -> list[str]:
        """The options that set its machine, as words."""
        return machine_words(self.machine, self.overrides)


@attrs.frozen
class Found:
    """The launches of a target, in the order they are written, and what there is to say of kernels without one."""

    launches: tuple[LaunchName, ...]
    notes: tuple[str, ...]


def perform(
    job: LaunchJob[R],
    send: Callable[[Found | Failure | R], None],
    *,
    timeout_s: float | None = None,
    share: Share = "first",
    last_words: Callable[[Failure], None] | None = None,
) -> None:
    """Do a job and send what comes of it: the result of its launch or, where it names none, the launches of its target
    and then the results of a ``share`` of them. What cannot be had is a failure instead.

    ``timeout_s`` limits importing the target, and then each launch; None sets no limit. ``last_words``: what pays no
    heed to the limit ends this process, after these have been called with its failure.
    """

    def limited(what: str, of: LaunchJob[R]) -> contextlib.AbstractContextManager[None]:
        if last_words is None:
            return time_limit(timeout_s, what)
        say = last_words
        return time_limit(timeout_s, what, ends_process=True, last_words=lambda error: say(_failure(of, error)))

    guard = Guard(job.target.source)
    try:
        if job.target.is_file and is_saved_graph(job.target.source):
            send(job.of_saved())
            return
        with limited(f"importing {job.target.source}", job):
            kernels = find_kernels(job.target, guard)
    except Exception as error:
        send(_failure(job, error))
        return
    launches = [job.launch] if job.launch is not None else []
    if job.launch is None:
        found = _launches(job, kernels)
        send(found)
        several = len(found.launches) > 1
        launches += [] if several and share == "only" else found.launches[: 1 if share == "first" else None]
    for kernel, name in launches:
        one = attrs.evolve(job, launch=(kernel, name))
        try:
            with limited(str(one), one):
                result = one.of_launch(kernels[kernel].launch(name), guard)
        except Exception as error:
            send(_failure(one, error))
        else:
            send(result)


def _failure(job: LaunchJob[R], error: Exception) -> Failure:
    # A fault of our own takes the result of one launch, the others have theirs.
    return Failure.of(str(job), as_user_error(error, f"kernscope failed on {job}"))


def _launches(job: LaunchJob[R], kernels: Mapping[str, Kernel]) -> Found:
    notes = [] if kernels or not job.is_named else [f"{job.target}: no kernels"]
    found: list[LaunchName] = []
    for name, kernel in kernels.items():
        chosen = [launch for launch in kernel.launches if job.only in (None, launch)]
        if not chosen:
            what = f"no launch {job.only!r}" if job.only else "no launch"
            notes.append(f"{job.target.source}: kernel {name} is not {job.done}: it has {what}")
        found += [(name, launch) for launch in chosen]
    return Found(tuple(found), tuple(notes))
