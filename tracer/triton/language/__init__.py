"""The names of ``triton.language``: what runs, and what is refused and why."""

from __future__ import annotations

from typing import Any

from ..values.types import MISSING, TYPES, BlockType, PointerType, Type, type_of_name
from ..values.value import Value, lift
from . import arithmetic, control, memory, reducing, shapes
from .builtins import BUILTINS
from .descriptors import Descriptor
from .libdevice import LIBDEVICE, REFUSED_LIBDEVICE
from .random import RANDOM

__all__ = ["BUILTINS", "EXTRA", "LIBDEVICE", "MATH", "NAMES", "RANDOM", "REFUSED", "REFUSED_EXTRA", "REFUSED_LIBDEVICE"]

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

#: Those of them that ``tl`` itself has.
_ALSO_IN_TL = (
    *("exp", "exp2", "log", "log2", "sqrt", "sqrt_rn", "rsqrt", "sin", "cos", "erf", "floor", "ceil", "abs", "sigmoid"),
    *("cdiv", "clamp", "div_rn", "fdiv", "fma", "umulhi"),
)

#: ``triton.language``, by name.
NAMES: dict[str, Any] = {
    **TYPES,
    **MISSING,
    **{name: MATH[name] for name in _ALSO_IN_TL},
    **RANDOM,
    **memory.atomics,
    "PropagateNan": arithmetic.PropagateNan,
    "TRITON_MAX_TENSOR_NUMEL": 1 << 20,
    "add": arithmetic.two("add"),
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
    "const": PointerType,
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
    "map_elementwise": control.map_elementwise,
    "max": reducing.max_,
    "max_constancy": control.max_constancy,
    "max_contiguous": control.max_contiguous,
    "maximum": arithmetic.maximum,
    "min": reducing.min_,
    "minimum": arithmetic.minimum,
    "mul": arithmetic.two("mul"),
    "multiple_of": control.multiple_of,
    "num_programs": control.num_programs,
    "permute": shapes.permute,
    "pi32_t": PointerType(TYPES["int32"]),
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
    "str_to_ty": type_of_name,
    "sub": arithmetic.two("sub"),
    "sum": reducing.sum_,
    "swizzle2d": control.swizzle2d,
    "tensor": Value,
    "tensor_descriptor": Descriptor,
    "tensor_descriptor_type": Descriptor,
    "to_tensor": lift,
    "topk": reducing.topk,
    "trans": shapes.trans,
    "tuple": tuple,
    "unsqueeze": shapes.unsqueeze,
    "view": shapes.view_as,
    "where": arithmetic.where,
    "xor_sum": reducing.xor_sum,
    "zeros": shapes.zeros,
    "zeros_like": shapes.zeros_like,
}

#: ``triton.language.extra.cuda`` and the like: launches run one after the other, each begins when all before are done.
EXTRA: dict[str, Any] = {
    "gdc_wait": control.debug_barrier,
    "gdc_launch_dependents": control.debug_barrier,
}

_GPU = "it speaks of a GPU's threads or instructions"
#: Names of ``triton.language.extra.cuda`` that cannot run, each with the reason.
REFUSED_EXTRA: dict[str, str] = {
    "globaltimer": "no clock runs while a kernel is executed: session.launches have their times on the machine",
    "smid": "programs are dealt to processing elements after the launch",
    "num_threads": _GPU,
    "num_warps": _GPU,
    "convert_custom_float8_sm70": _GPU,
    "convert_custom_float8_sm80": _GPU,
}
#: Names of ``triton.language`` that cannot run, each with the reason.
REFUSED: dict[str, str] = {
    "inline_asm_elementwise": "it is a GPU's assembly",
    "dot_scaled": "it is not built yet",
    "async_task": _GPU,
    "atomic_load": "it is not built yet: tl.load reads what is there",
    "atomic_poll": "programs run one after the other: none can wait for another",
    "atomic_store": "it is not built yet: tl.atomic_xchg stores as one",
    "aggregate_replace": "it is not built yet",
    "bitonic_merge": "it is a part of tl.sort, which runs",
    "expect_zero": _GPU,
    "pair_uniform_to_normal": "it is a part of tl.randn, which runs",
    "uint_to_uniform_float": "it is a part of tl.rand, which runs",
    "slice": "it is the compiler's own",
    "void": "no value has this type",
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
    "sqrt_rn",
    "erf",
    "reduce_or",
]:
    setattr(Value, _name, NAMES[_name])
for _name, _method in (
    ("T", property(shapes.trans)),
    ("__getitem__", shapes.getitem),
    ("item", shapes.item),
    ("logical_and", arithmetic.two("and")),
    ("logical_or", arithmetic.two("or")),
    ("to", shapes.cast),
):
    setattr(Value, _name, _method)
