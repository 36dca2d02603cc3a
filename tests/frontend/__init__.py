"""A second front end, for tests: it records straight-line programs, without scopes, arguments to bind, or launches.

Its kernels are what the shared generator draws (:mod:`kernelgen`), less their scopes: allocations have automatic
lifetimes, and addresses come from a pass after the trace.
"""

from .straight_line import FOLDERS, record, unplaced

__all__ = ["FOLDERS", "record", "unplaced"]
