"""The rows of a sweep as a Parquet file (the extra ``sweep``)."""

from __future__ import annotations

import io
from typing import Any

from ...ir.errors import MissingExtraError
from .result import MEASURES, Sweep

try:
    import pyarrow
    import pyarrow.parquet
except ImportError as missing:
    raise MissingExtraError(".parquet needs pyarrow", help='python -m pip install "kernscope[sweep]"') from missing

__all__ = ["parquet_bytes"]

_TYPES: dict[str, Any] = {
    "verdict": pyarrow.string(),
    "reason": pyarrow.string(),
    "pareto": pyarrow.bool_(),
    **dict.fromkeys(("makespan_ps", "bound_ps", "peak_bytes"), pyarrow.int64()),
}


def parquet_bytes(sweep: Sweep) -> bytes:
    """The file's content: axes as texts, sizes and times as int64, null where nothing is known."""
    columns = sweep.columns()
    arrays = {axis: pyarrow.array([str(v) for v in columns[axis]], pyarrow.string()) for axis in sweep.axes}
    arrays |= {name: pyarrow.array(columns[name], _TYPES[name]) for name in MEASURES}
    written = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(arrays), written)
    return written.getvalue()
