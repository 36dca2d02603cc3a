"""What to write for the methods that tensors of other libraries have: the ``help:`` of an attribute's error."""

from __future__ import annotations

__all__ = ["METHODS"]

_VALUES = "values are not known while tracing: look at them after ks.run"
_IN_PLACE = "write tl.copy_to(h, ...): it is what changes a handle's bytes"
_COPY = "for fresh bytes with the same values write h.to(h.dtype); for another name, m = h"

#: By name, of handles.
METHODS: dict[str, str] = {
    # shapes: views
    "view": "write tl.reshape(h, shape); for another dtype h.to(dtype), which converts the values, or "
    "h.to(dtype, bitcast=True), which keeps their bits",
    "unsqueeze": "write tl.expand_dims(h, axis), or h[:, None]",
    "squeeze": "write tl.reshape(h, shape), or index the dimension: h[:, 0]",
    "flatten": "write tl.reshape(h, -1)",
    "ravel": "write tl.reshape(h, -1)",
    "permute": "write tl.trans(h, *axes)",
    "transpose": "write h.T, or tl.trans(h, *axes)",
    "swapaxes": "write tl.trans(h, *axes)",
    "t": "write h.T",
    "expand": "write tl.broadcast_to(h, shape)",
    "repeat": "write tl.broadcast_to(h, shape): dimensions of size 1 repeat",
    "contiguous": "write h.to(h.dtype): fresh bytes are dense",
    "split": "write slices: h[:, :n], h[:, n:]",
    "chunk": "write slices: h[:, :n], h[:, n:]",
    # what is known
    "size": "write h.shape",
    "dim": "write h.ndim",
    "numel": "multiply the sizes: math.prod(h.shape)",
    "element_size": "write h.dtype.itemsize",
    "strides": "write h.layout.strides (in elements)",
    "stride": "write h.layout.strides (in elements)",
    # dtypes
    "astype": "write h.to(dtype)",
    "type": "write h.dtype, or h.to(dtype) to convert",
    "cast": "write h.to(dtype)",
    "float": "write h.to(tl.float32)",
    "double": "write h.to(tl.float64)",
    "half": "write h.to(tl.float16)",
    "bfloat16": "write h.to(tl.bfloat16)",
    "int": "write h.to(tl.int32)",
    "long": "write h.to(tl.int64)",
    # copies, and writing in place
    "clone": _COPY,
    "copy": _COPY,
    "copy_": _IN_PLACE,
    "fill_": _IN_PLACE,
    "fill": _IN_PLACE,
    "zero_": _IN_PLACE,
    "add_": _IN_PLACE,
    "mul_": _IN_PLACE,
    "set": _IN_PLACE,
    # mathematics by other names
    "mm": "write tl.dot(a, b)",
    # values
    "item": _VALUES,
    "tolist": _VALUES,
    "numpy": _VALUES,
    "cpu": _VALUES,
    "data": _VALUES,
    "data_ptr": "write h.address: the first byte in the rank's scratch",
}
