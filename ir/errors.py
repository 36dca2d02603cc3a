"""Every error a user can cause, one class a mistake.

An error carries a message with the values involved, the places it speaks of (each with a role) and one ``help:`` line.
Each class also subclasses the builtin that a Python programmer would expect to catch.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from .forms.printable import printable_lines
from .source.location import Location

__all__ = [
    "ArgumentError",
    "BoundsError",
    "ChannelError",
    "ClusterError",
    "DTypeError",
    "DeadlockError",
    "ExecutionError",
    "GraphFormatError",
    "IndexTileError",
    "IndexingError",
    "InfeasibleError",
    "InputError",
    "InternalError",
    "InvalidGraphError",
    "KernelFileError",
    "KernelNotFoundError",
    "KernelProcessError",
    "KernelRaisedError",
    "KernscopeError",
    "LaunchError",
    "LifetimeError",
    "MachineError",
    "MemoryLimitError",
    "MissingExtraError",
    "NoScopesError",
    "NodeLimitError",
    "NotTracingError",
    "OptionError",
    "OrderError",
    "OtherThreadError",
    "OutputError",
    "OwnerError",
    "PolicyError",
    "RuleError",
    "ScopeError",
    "ScratchOverflowError",
    "ScriptFailedError",
    "ShapeError",
    "SpaceError",
    "TargetMismatchError",
    "TaskFileError",
    "TimeLimitError",
    "TracedValueError",
    "TritonCompileError",
    "TritonDescriptorError",
    "TritonNameError",
    "TritonSessionError",
    "TritonSourceError",
    "UnknownNameError",
    "UnmatchedMessageError",
    "UseAfterScopeError",
    "did_you_mean",
]


#: How many elements of a list of handles are shown.
_ELEMENTS_SHOWN = 4
#: How many of the calls that led to a place are shown.
_CALLERS_SHOWN = 4


class KernscopeError(Exception):
    """Base of all errors a user can cause.

    ``message`` is one line with the values, ``places`` are ``(role, Location)`` pairs, ``help`` says what to do next.
    Every class has a ``code`` that outputs name; its page for ``kernscope explain`` is the docstring and ``fix``.
    """

    code: ClassVar[str]
    fix: ClassVar[str]

    def __init__(self, message: str, *, help: str = "", places: Iterable[tuple[str, Location]] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.help = help
        self.places: list[tuple[str, Location]] = list(places)

    def __reduce__(self) -> tuple[Any, ...]:
        # As exceptions do by themselves, but said: Dask has a way of its own with those that do not say it, which fails
        # on one that is a builtin error, too.
        return type(self), self.args, self.__dict__

    @classmethod
    def title(cls) -> str:
        """The name that stands beside the code: ``shape-error``."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower()

    def at(self, location: Location | None, role: str = "here") -> KernscopeError:
        """Add a place (the first one added wins a role) and return the error itself, ready to raise."""
        if location is not None and all(known != role for known, _ in self.places):
            self.places.append((role, location))
        return self

    def __str__(self) -> str:
        lines = [self.message]
        for role, place in self.places:
            lines.append(f"  --> {place} ({role})" if role != "here" else f"  --> {place}")
            lines += [f"      called from {caller}" for caller in place.stack[:_CALLERS_SHOWN]]
        if self.help:
            lines.append(f"  help: {self.help}")
        return printable_lines("\n".join(lines))


class ShapeError(KernscopeError, ValueError):
    """Shapes that do not go together, or a shape that is not one."""

    code = "KE101"
    fix = "Compare the shapes that the message names; `tl.reshape`, `tl.expand_dims` and `tl.trans` change one."


class DTypeError(KernscopeError, TypeError):
    """An unknown dtype, or dtypes that do not go together."""

    code = "KE102"
    fix = "Cast one side, `h.to(tl.float32)`, or use one of the dtypes that the message lists."


class IndexingError(KernscopeError, IndexError):
    """An index or slice that a view cannot have."""

    code = "KE103"
    fix = "Index with integers and slices, as many as the tensor has axes; of a tile only with slices of step 1."


class BoundsError(KernscopeError, IndexError):
    """A load or store that leaves its HBM tensor."""

    code = "KE104"
    fix = (
        "Let the loop end at the tensor's shape, or write `tl.load(..., pad=0.0)` and `tl.store(..., "
        "clip=True)` at its edge."
    )


class ArgumentError(KernscopeError, TypeError):
    """Arguments that a kernel or an operation does not take."""

    code = "KE105"
    fix = "Compare the call with the signature in the message."


class LaunchError(KernscopeError, LookupError):
    """A launch that does not exist, or that is declared wrongly."""

    code = "KE106"
    fix = 'Name one of the kernel\'s launches, or declare one: `@ks.launch("small", x=ks.hbm((128, 128), "f16"))`.'


class TracedValueError(KernscopeError, TypeError):
    """Python control flow asked for a value that is unknown while tracing."""

    code = "KE107"
    fix = (
        "Branch on shapes, arguments and `tl.program_id`, which are Python values; choose between tensors "
        "with `tl.where`."
    )


class UnknownNameError(KernscopeError, AttributeError):
    """A name that ``tl``, a handle or an HBM tensor does not have."""

    code = "KE108"
    fix = "Use what the message proposes; `dir(tl)` lists what there is."


class NotTracingError(KernscopeError, RuntimeError):
    """A ``tl`` function was called outside a trace."""

    code = "KE109"
    fix = "Call `tl` in a kernel only, and hand the kernel to `ks.trace`."


class OwnerError(KernscopeError, RuntimeError):
    """A handle, a future or an HBM tensor of another trace, or a handle of another rank: its bytes are not here."""

    code = "KE112"
    fix = (
        "Make it anew in every rank and every call of the kernel: what `functools.cache`, a global or a default "
        "argument keeps belongs to the first. Between ranks, `tl.send` and `tl.recv` it."
    )


class OtherThreadError(KernscopeError, RuntimeError):
    """Another thread than the kernel's recorded an operation: in what order they come is chance."""

    code = "KE113"
    fix = "Record every operation in the kernel's own thread; threads may prepare Python values for it."


class NodeLimitError(KernscopeError, RuntimeError):
    """The trace grew past its node limit: most often a loop that never ends."""

    code = "KE110"
    fix = "Look for a loop that never ends; a larger kernel is traced with `ks.trace(..., max_nodes=N)`."


class ScopeError(KernscopeError, RuntimeError):
    """Scratch scopes entered or left in the wrong order."""

    code = "KE201"
    fix = "Write `with tl.scratch_scope():`, which enters and leaves in the right order."


class ScratchOverflowError(KernscopeError, RuntimeError):
    """The scratch cursor passed the budget."""

    code = "KE202"
    fix = "Use smaller tiles (`kernscope fit` finds the largest that fit), or close scopes earlier."


class UseAfterScopeError(KernscopeError, RuntimeError):
    """A handle was used after the exit of the scope that made it (strict tracing)."""

    code = "KE203"
    fix = "Copy the value out before the scope ends: `tl.copy_to(kept, value)`."


class SpaceError(KernscopeError, ValueError):
    """A memory that the machine does not have, or one that an engine does not reach."""

    code = "KE206"
    fix = "`kernscope machine` shows the memories; tl.move(h, name) brings a tile into another one."


class ChannelError(KernscopeError, ValueError):
    """A direction that the topology does not have, or ranks that do not fit the topology."""

    code = "KE111"
    fix = "Use a direction of the machine's topology, and a number of ranks that it can hold."


class DeadlockError(KernscopeError, RuntimeError):
    """Ranks wait for each other in a cycle. ``cycle`` holds the waiting nodes' locations, in order of waiting."""

    code = "KE305"
    #: What stands in the place of a makespan.
    verdict: ClassVar[str] = "deadlock"
    fix = "Let one rank of the cycle send before it receives, or receive with `tl.recv_async`."

    def __init__(
        self,
        message: str,
        *,
        help: str = "",
        places: Iterable[tuple[str, Location]] = (),
        cycle: Sequence[Location] = (),
        nodes: Sequence[int] = (),
    ) -> None:
        super().__init__(message, help=help, places=places)
        self.cycle = tuple(cycle)
        self.nodes = tuple(nodes)


class UnmatchedMessageError(KernscopeError, RuntimeError):
    """A message that finds no partner, or one that expects another tile: the kernel never ends, or not as it is meant.
    ``nodes`` holds the sends and recvs at fault."""

    code = "KE306"
    fix = "Mend what `kernscope lint` reports as KS401: before that there is no schedule."
    #: What stands in the place of a makespan.
    verdict: ClassVar[str] = "unmatched"

    def __init__(
        self,
        message: str,
        *,
        help: str = "",
        places: Iterable[tuple[str, Location]] = (),
        nodes: Sequence[int] = (),
    ) -> None:
        super().__init__(message, help=help, places=places)
        self.nodes = tuple(nodes)


class MachineError(KernscopeError, ValueError):
    """A machine description that does not exist or does not hold together."""

    code = "KE301"
    fix = "`kernscope machine` lists the presets; `kernscope machine FILE` checks a file."


class TargetMismatchError(KernscopeError, ValueError):
    """A graph is scheduled for a machine whose target differs from the one it was traced for."""

    code = "KE302"
    fix = "Trace for the machine that is scheduled for: scratch size, alignment and topology are part of the graph."


class PolicyError(KernscopeError, ValueError):
    """An unknown scheduling policy or effort."""

    code = "KE303"
    fix = "Use one of the names that the message lists."


class InfeasibleError(KernscopeError, ValueError):
    """A hard constraint cannot be met: says what was needed and what would relax it."""

    code = "KE304"
    fix = "Relax what the message names."


class LifetimeError(KernscopeError, ValueError):
    """A graph that uses scratch outside its lifetime cannot be laid out anew: it would compute something else."""

    code = "KE204"
    fix = "Mend what `kernscope lint` reports first."


class NoScopesError(KernscopeError, ValueError):
    """A graph whose allocations have automatic lifetimes is asked for what only scopes can do."""

    code = "KE205"
    fix = "Leave out what the message names, or record the kernel with scopes."


class InvalidGraphError(KernscopeError, ValueError):
    """A graph that breaks an invariant. ``violations`` lists all of them."""

    code = "KE401"
    fix = "Trace the kernel again. If a graph that was just traced is invalid, please report it."

    def __init__(self, message: str, *, help: str = "", violations: Sequence[str] = ()) -> None:
        super().__init__(message, help=help)
        self.violations = tuple(violations)


class GraphFormatError(KernscopeError, ValueError):
    """A saved graph that is damaged, hostile, or of another version."""

    code = "KE402"
    fix = "Save the graph again with `kernscope trace -o`, and with this version."


class InputError(KernscopeError, ValueError):
    """Inputs of a run that are missing, unknown, or of the wrong shape or dtype."""

    code = "KE403"
    fix = "Give every tensor that the message names, with its shape and dtype."


class OrderError(KernscopeError, ValueError):
    """An execution order that is no permutation of the nodes or breaks an edge."""

    code = "KE404"
    fix = "Take the order from a schedule of the same graph."


class ExecutionError(KernscopeError, RuntimeError):
    """A graph that cannot be executed on numbers."""

    code = "KE405"
    fix = "Mend what `kernscope lint` reports first."


class IndexTileError(KernscopeError, IndexError):
    """An index tile that names a row which its region of HBM does not have: known when the kernel is executed."""

    code = "KE408"
    fix = "Keep the index tile in the region's rows, counted from 0: `tl.clamp(i, 0, rows - 1)`."


class MemoryLimitError(KernscopeError, MemoryError):
    """Tensors that do not fit into the memory of the machine that is to execute the graph."""

    code = "KE406"
    fix = "Execute a smaller launch; tracing, linting and scheduling need no tensor's memory."


class TaskFileError(KernscopeError, ValueError):
    """A task graph's file that is missing, or not in the format that it is read as."""

    code = "KE407"
    fix = "Mend the line that the message names, or say which format it is: `kernscope solve --format`."


class OptionError(KernscopeError, ValueError):
    """An option or override that does not exist or does not parse."""

    code = "KE501"
    fix = "Use one of the values that the message lists; `--help` has them all."


class KernelFileError(KernscopeError, OSError):
    """A kernel file that cannot be read or imported."""

    code = "KE502"
    fix = "The file must exist and import without errors: run it with `python FILE`."


class KernelNotFoundError(KernscopeError, LookupError):
    """A file or module without the kernel asked for."""

    code = "KE503"
    fix = "Name a kernel of the file, `file.py::kernel`, or decorate one with `@ks.kernel`."


class KernelRaisedError(KernscopeError, RuntimeError):
    """The kernel's own code raised while it was traced (command line); the cause is the original error."""

    code = "KE504"
    fix = "The error is one of the kernel's own code: mend the line that is shown. `--debug` shows all frames."


class OutputError(KernscopeError, OSError):
    """A result that cannot be written where it was asked to go."""

    code = "KE505"
    fix = "Choose a place that can be written to with `-o`."


class RuleError(KernscopeError, LookupError):
    """An unknown rule code."""

    code = "KE506"
    fix = "`kernscope explain` lists all codes."


class TimeLimitError(KernscopeError, TimeoutError):
    """A kernel that was given a time limit did not end within it."""

    code = "KE507"
    fix = "Mend the loop that never ends, use a smaller launch, or allow more: `--timeout SECONDS`."


class MissingExtraError(KernscopeError, ImportError):
    """An optional dependency is not installed; the help line names the extra."""

    code = "KE508"
    fix = "Install the extra that the message names."


class KernelProcessError(KernscopeError, RuntimeError):
    """A kernel, or the import of its file, ended the process that it was linted in."""

    code = "KE509"
    fix = "Run it alone to see what it says, with the command that the message names."


class ClusterError(KernscopeError, ConnectionError):
    """A cluster that does not answer."""

    code = "KE510"
    fix = "Start it, or give the address of one that runs: `dask scheduler` prints its own."


class TritonNameError(KernscopeError, AttributeError):
    """A name of Triton's that kernscope does not answer, or refuses."""

    code = "KE601"
    fix = "The documentation of Triton kernels lists every name: whether it runs, or why it is refused."


class TritonCompileError(KernscopeError, ValueError):
    """A kernel that Triton's compiler would refuse: a failed `static_assert`, a size that is no power of two, shapes
    or types that do not go together."""

    code = "KE602"
    fix = "Change what the message names; of several configurations the next one is tried."


class TritonSourceError(KernscopeError, OSError):
    """A Triton kernel whose source cannot be read, or is not what was imported."""

    code = "KE603"
    fix = "Write the kernel as a function with `def`, in a file or a notebook's cell."


class TritonSessionError(KernscopeError, RuntimeError):
    """A Triton kernel that was launched outside a session, or called like a function, or a session within another."""

    code = "KE604"
    fix = "Launch it inside `with ks.triton.session():`, or run its script by `kernscope triton`."


class TritonDescriptorError(KernscopeError, AssertionError):
    """A tensor descriptor that Triton would refuse."""

    code = "KE605"
    fix = "Its last dimension is contiguous, its other strides are multiples of 16 bytes, its lists are equally long."


class ScriptFailedError(KernscopeError, RuntimeError):
    """A script that raised an error of its own while it ran in a session, such as a failed assert."""

    code = "KE606"
    fix = "The line that the message names raised it; what its launches did until then is told all the same."


class InternalError(KernscopeError, RuntimeError):
    """A fault of kernscope's own; the cause is the original error."""

    code = "KE901"
    fix = "Please report it, with the traceback that `--debug` shows."


#: The errors by code.
ERRORS: Mapping[str, type[KernscopeError]] = MappingProxyType(
    {kind.code: kind for kind in sorted(KernscopeError.__subclasses__(), key=lambda kind: kind.code)}
)


def did_you_mean(name: str, known: Iterable[str], *, what: str = "", alike: float = 0.6, listed: str = "") -> str:
    """The ``help:`` text for a misspelt name: the nearest known one, ``alike`` from 0 to 1, else the list of all, or
    what says where they are ``listed``."""
    options = list(known)
    near = difflib.get_close_matches(name, options, n=1, cutoff=alike)
    if near:
        return f"did you mean {near[0]!r}?"
    return listed or f"{what or 'known names'}: {', '.join(options) if options else 'none'}"


def raised(error: BaseException) -> str:
    """An exception in one line: its kind and what it says."""
    try:
        said = " ".join(str(error).split())
    except Exception:  # an author's class may fail at this, too
        said = ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def shown(value: object) -> str:
    """A value for a message: its ``repr``, or what it is where that is long (an array's elements say little). What a
    kernel holds says by ``_in_messages`` how it is called, also within a list."""
    if hasattr(type(value), "_in_messages"):
        return str(value._in_messages)  # type: ignore[attr-defined]  # a property of that class
    if isinstance(value, list | tuple) and any(hasattr(type(each), "_in_messages") for each in value[:_ELEMENTS_SHOWN]):
        parts = [*map(shown, value[:_ELEMENTS_SHOWN]), *(["..."] if len(value) > _ELEMENTS_SHOWN else [])]
        return f"[{', '.join(parts)}]" if isinstance(value, list) else f"({', '.join(parts)})"
    text = repr(value)
    if len(text) <= 100 and "\n" not in text:
        return text
    shape = getattr(value, "shape", None)
    return type(value).__name__ + (f" of shape {shape}" if isinstance(shape, tuple) else "")
