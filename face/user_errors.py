"""What must not happen, told as an error like all others: one line, and the traceback only on request."""

from __future__ import annotations

from ..ir.errors import InternalError, KernscopeError, raised

__all__ = ["as_user_error"]


def as_user_error(error: BaseException, what: str = "kernscope failed") -> KernscopeError:
    """A user's error as it is; any other exception is a fault of kernscope's own, with the traceback it had."""
    if isinstance(error, KernscopeError):
        return error
    told = InternalError(f"{what}: {raised(error)}", help="please report it; --debug shows where")
    told.__cause__ = error
    return told.with_traceback(error.__traceback__)
