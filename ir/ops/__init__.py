"""The operation table. Importing the package declares every operation; ``OPERATIONS`` holds them by name and by
code."""

from __future__ import annotations

from . import (
    atomics,
    indirect,
    movement,
    random_numbers,
    rare_functions,
    rearranging,
    recurrences,
    reductions,
    special_functions,
)
from .elementwise import TABLE as OPERATIONS
from .elementwise import common_dtype
from .numbers import cast_array, check_scalar
from .operation import (
    NO_WORK,
    Cost,
    End,
    Family,
    Kind,
    Linear,
    Operand,
    Operation,
    OperationTable,
    Orders,
    Scalar,
    Space,
    Work,
    WorkKind,
)

__all__ = [
    "NO_WORK",
    "OPERATIONS",
    "Cost",
    "End",
    "Family",
    "Kind",
    "Linear",
    "Operand",
    "Operation",
    "OperationTable",
    "Orders",
    "Scalar",
    "Space",
    "Work",
    "WorkKind",
    "atomics",
    "cast_array",
    "check_scalar",
    "common_dtype",
    "indirect",
    "movement",
    "random_numbers",
    "rare_functions",
    "rearranging",
    "recurrences",
    "reductions",
    "special_functions",
]
