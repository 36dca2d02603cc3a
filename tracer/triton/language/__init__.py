"""The names of ``triton.language``: what runs, and what is refused and why."""

from __future__ import annotations

from typing import Any

from ..values.types import TYPES, BlockType, PointerType, Type
from ..values.value import Value
from . import arithmetic, control, memory, reducing, shapes
from .builtins import BUILTINS
from .descriptors import Descriptor
from .random import RANDOM

__all__ = ["BUILTINS", "EXTRA", "LIBDEVICE", "MATH", "NAMES", "RANDOM", "REFUSED"]

#: Functions of numbers: ``tl.exp``, ``tl.math.exp``.
MATH: dict[str, Any] = {
    **arithmetic.FUNCTIONS,
    "cdiv": arithmetic.cdiv,
    "clamp": arithmetic.clamp,
    "div_rn": arithmetic.fdiv,
    "fdiv": arithmetic.fdiv,
    "fma": arithmetic.fma,
    "pow": arithmetic.power,
    "sqrt_rn": arithmetic.FUNCTIONS["sqrt"],
    "umulhi": arithmetic.umulhi,
    "max": arithmetic.maximum,
    "min": arithmetic.minimum,
}

#: ``triton.language``, by name.
NAMES: dict[str, Any] = {
    **TYPES,
    **{name: f for name, f in MATH.items() if name not in ("max", "min", "pow", "tanh", "round", "tan", "trunc")},
    **RANDOM,
    **memory.atomics,
    "advance": memory.advance,
    "arange": shapes.arange,
    "argmax": reducing.argmax,
    "argmin": reducing.argmin,
    "associative_scan": reducing.associative_scan,
    "assume": control.assume,
    "atomic_cas": memory.atomic_cas,
    "block_type": BlockType,
    "broadcast": shapes.broadcast,
    "broadcast_to": shapes.broadcast_to,
    "cast": shapes.cast,
    "cat": shapes.cat,
    "condition": control.condition,
    "cumprod": reducing.cumprod,
    "cumsum": reducing.cumsum,
    "debug_barrier": control.debug_barrier,
    "device_assert": control.device_assert,
    "device_print": control.device_print,
    "dot": arithmetic.dot,
    "dtype": Type,
    "expand_dims": shapes.expand_dims,
    "flip": shapes.flip,
    "full": shapes.full,
    "gather": reducing.gather,
    "histogram": reducing.histogram,
    "interleave": shapes.interleave,
    "join": shapes.join,
    "load": memory.load,
    "load_tensor_descriptor": memory.load_descriptor,
    "make_block_ptr": memory.make_block_ptr,
    "make_tensor_descriptor": memory.make_tensor_descriptor,
    "max": reducing.max_,
    "max_constancy": control.max_constancy,
    "max_contiguous": control.max_contiguous,
    "maximum": arithmetic.maximum,
    "min": reducing.min_,
    "minimum": arithmetic.minimum,
    "multiple_of": control.multiple_of,
    "num_programs": control.num_programs,
    "permute": shapes.permute,
    "pi32_t": TYPES["int32"],
    "pointer_type": PointerType,
    "program_id": control.program_id,
    "range": control.range_,
    "ravel": shapes.ravel,
    "reduce": reducing.reduce,
    "reduce_or": reducing.reduce_or,
    "reshape": shapes.reshape,
    "softmax": reducing.softmax,
    "sort": reducing.sort,
    "split": shapes.split,
    "squeeze": shapes.squeeze,
    "static_assert": control.static_assert,
    "static_print": control.static_print,
    "static_range": control.static_range,
    "store": memory.store,
    "store_tensor_descriptor": memory.store_descriptor,
    "sum": reducing.sum_,
    "swizzle2d": control.swizzle2d,
    "tensor": Value,
    "tensor_descriptor": Descriptor,
    "tensor_descriptor_type": Descriptor,
    "topk": reducing.topk,
    "trans": shapes.trans,
    "unsqueeze": shapes.unsqueeze,
    "view": shapes.view_as,
    "where": arithmetic.where,
    "xor_sum": reducing.xor_sum,
    "zeros": shapes.zeros,
    "zeros_like": shapes.zeros_like,
}

#: ``triton.language.extra.libdevice``, by name.
LIBDEVICE: dict[str, Any] = {
    **MATH,
    "rint": arithmetic.FUNCTIONS["round"],
    "nearbyint": arithmetic.FUNCTIONS["round"],
    "fast_expf": arithmetic.FUNCTIONS["exp"],
    "fast_logf": arithmetic.FUNCTIONS["log"],
    "fast_dividef": arithmetic.fdiv,
    "isnan": lambda x: x != x,
}

#: ``triton.language.extra.cuda`` and the like.
EXTRA: dict[str, Any] = {}

_GPU = "it speaks of a GPU's threads or instructions"
#: Names of ``triton.language`` that cannot run, each with the reason.
REFUSED: dict[str, str] = {
    "inline_asm_elementwise": "it is a GPU's assembly",
    "map_elementwise": "it is not built yet",
    "dot_scaled": "it is not built yet",
    "philox": "it is not built yet: rand, randn and randint run",
    "async_task": _GPU,
    "num_threads": _GPU,
    "num_warps": _GPU,
    "float8e4b15": "no other hardware has this type",
    "float8e4b8": "kernscope has no such dtype: float8e4nv and float8e5 run",
    "float8e5b16": "kernscope has no such dtype: float8e4nv and float8e5 run",
}

for _name in [
    "argmax",
    "argmin",
    "associative_scan",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xchg",
    "atomic_xor",
    "broadcast_to",
    "cast",
    "cdiv",
    "cumprod",
    "cumsum",
    "expand_dims",
    "flip",
    "gather",
    "histogram",
    "permute",
    "ravel",
    "reduce",
    "reshape",
    "sort",
    "split",
    "store",
    "sum",
    "topk",
    "trans",
    "view",
    "xor_sum",
    "max",
    "min",
    "softmax",
    "abs",
    "ceil",
    "cos",
    "exp",
    "exp2",
    "fdiv",
    "floor",
    "fma",
    "log",
    "log2",
    "rsqrt",
    "sigmoid",
    "sin",
    "sqrt",
    "squeeze",
    "unsqueeze",
    "logical_and",
    "logical_or",
]:
    if _name in NAMES:
        setattr(Value, _name, NAMES[_name])
for _name, _method in (("to", shapes.cast), ("__getitem__", shapes.getitem), ("T", property(shapes.trans))):
    setattr(Value, _name, _method)
