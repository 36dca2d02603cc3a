"""Every error a user can cause, one class a mistake.

An error carries a message with the values involved, the places it speaks of (each with a role) and one ``help:`` line.
Each class also subclasses the builtin that a Python programmer would expect to catch.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from .location import Location

__all__ = [
    "ArgumentError",
    "BoundsError",
    "ChannelError",
    "DTypeError",
    "DeadlockError",
    "ExecutionError",
    "GraphFormatError",
    "IndexingError",
    "InfeasibleError",
    "InputError",
    "InvalidGraphError",
    "KernelFileError",
    "KernelNotFoundError",
    "KernelRaisedError",
    "KernscopeError",
    "LaunchError",
    "LifetimeError",
    "MachineError",
    "MissingExtraError",
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
    "ShapeError",
    "TargetMismatchError",
    "TimeLimitError",
    "TracedValueError",
    "UnknownNameError",
    "UseAfterScopeError",
    "did_you_mean",
]


class KernscopeError(Exception):
    """Base of all errors a user can cause.

    ``message`` is one line with the values, ``places`` are ``(role, Location)`` pairs, ``help`` says what to do next.
    """

    def __init__(self, message: str, *, help: str = "", places: Iterable[tuple[str, Location]] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.help = help
        self.places: list[tuple[str, Location]] = list(places)

    def at(self, location: Location | None, role: str = "here") -> KernscopeError:
        """Add a place (the first one added wins a role) and return the error itself, ready to raise."""
        if location is not None and all(known != role for known, _ in self.places):
            self.places.append((role, location))
        return self

    def __str__(self) -> str:
        lines = [self.message]
        lines += [f"  --> {place} ({role})" if role != "here" else f"  --> {place}" for role, place in self.places]
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)


class ShapeError(KernscopeError, ValueError):
    """Shapes that do not go together, or a shape that is not one."""


class DTypeError(KernscopeError, TypeError):
    """An unknown dtype, or dtypes that do not go together."""


class IndexingError(KernscopeError, IndexError):
    """An index or slice that a view cannot have."""


class BoundsError(KernscopeError, IndexError):
    """A load or store that leaves its HBM tensor."""


class ArgumentError(KernscopeError, TypeError):
    """Arguments that a kernel or an operation does not take."""


class LaunchError(KernscopeError, LookupError):
    """A launch that does not exist, or that is declared wrongly."""


class TracedValueError(KernscopeError, TypeError):
    """Python control flow asked for a value that is unknown while tracing."""


class UnknownNameError(KernscopeError, AttributeError):
    """A name that ``tl``, a handle or an HBM tensor does not have."""


class NotTracingError(KernscopeError, RuntimeError):
    """A ``tl`` function was called outside a trace, or an operator of a handle whose trace is not running."""


class OwnerError(NotTracingError):
    """A handle, a future or an HBM tensor of another trace, or a handle of another rank: its bytes are not here."""


class OtherThreadError(KernscopeError, RuntimeError):
    """Another thread than the kernel's recorded an operation: in what order they come is chance."""


class NodeLimitError(KernscopeError, RuntimeError):
    """The trace grew past its node limit: most often a loop that never ends."""


class ScopeError(KernscopeError, RuntimeError):
    """Scratch scopes entered or left in the wrong order."""


class ScratchOverflowError(KernscopeError, RuntimeError):
    """The scratch cursor passed the budget."""


class UseAfterScopeError(KernscopeError, RuntimeError):
    """A handle was used after the exit of the scope that made it (strict tracing)."""


class ChannelError(KernscopeError, ValueError):
    """A direction that the topology does not have, or ranks that do not fit the topology."""


class DeadlockError(KernscopeError, RuntimeError):
    """Ranks wait for each other in a cycle. ``cycle`` holds the waiting nodes' locations, in order of waiting."""

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


class MachineError(KernscopeError, ValueError):
    """A machine description that does not exist or does not hold together."""


class TargetMismatchError(KernscopeError, ValueError):
    """A graph is scheduled for a machine whose target differs from the one it was traced for."""


class PolicyError(KernscopeError, ValueError):
    """An unknown scheduling policy or effort."""


class InfeasibleError(KernscopeError, ValueError):
    """A hard constraint cannot be met: says what was needed and what would relax it."""


class LifetimeError(KernscopeError, ValueError):
    """A graph that uses scratch outside its lifetime cannot be laid out anew: it would compute something else."""


class InvalidGraphError(KernscopeError, ValueError):
    """A graph that breaks an invariant. ``violations`` lists all of them."""

    def __init__(self, message: str, *, help: str = "", violations: Sequence[str] = ()) -> None:
        super().__init__(message, help=help)
        self.violations = tuple(violations)


class GraphFormatError(KernscopeError, ValueError):
    """A saved graph that is damaged, hostile, or of another version."""


class InputError(KernscopeError, ValueError):
    """Inputs of a run that are missing, unknown, or of the wrong shape or dtype."""


class OrderError(KernscopeError, ValueError):
    """An execution order that is no permutation of the nodes or breaks an edge."""


class ExecutionError(KernscopeError, RuntimeError):
    """A graph that cannot be executed on numbers."""


class OptionError(KernscopeError, ValueError):
    """An option or override that does not exist or does not parse."""


class KernelFileError(KernscopeError, OSError):
    """A kernel file that cannot be read or imported."""


class KernelNotFoundError(KernscopeError, LookupError):
    """A file or module without the kernel asked for."""


class KernelRaisedError(KernscopeError, RuntimeError):
    """The kernel's own code raised while it was traced (command line); the cause is the original error."""


class OutputError(KernscopeError, OSError):
    """A result that cannot be written where it was asked to go."""


class RuleError(KernscopeError, LookupError):
    """An unknown rule code."""


class TimeLimitError(KernscopeError, TimeoutError):
    """A kernel that was given a time limit did not end within it."""


class MissingExtraError(KernscopeError, ImportError):
    """An optional dependency is not installed; the help line names the extra."""


def did_you_mean(name: str, known: Iterable[str], *, what: str = "") -> str:
    """The ``help:`` text for a misspelt name: the nearest known one, else the list of all."""
    options = list(known)
    near = difflib.get_close_matches(name, options, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    listed = ", ".join(options) if options else "none"
    return f"{what or 'known names'}: {listed}"


def shown(value: object) -> str:
    """A value for a message: its ``repr``, or what it is where that is long (an array's elements say little)."""
    text = repr(value)
    if len(text) <= 100 and "\n" not in text:
        return text
    shape = getattr(value, "shape", None)
    return type(value).__name__ + (f" of shape {shape}" if isinstance(shape, tuple) else "")
