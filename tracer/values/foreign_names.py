"""Names of Triton's language and of numpy that ``tl`` has not: what to write in their place, or why there is nothing.

The nearest spelling is no answer to a name that means something else (``sort`` is not ``sqrt``).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["NOT_THERE", "WRITE", "answer"]

#: By name the expression that takes its place: of floats ``x`` and ``y``, integers ``i`` and ``j``, conditions ``p``
#: and ``q``, all handles of one shape (M, N).
WRITE: Mapping[str, str] = MappingProxyType(
    {
        # arithmetic
        "absolute": "abs(x)",
        "subtract": "x - y",
        "multiply": "x * y",
        "divide": "x / y",
        "true_divide": "x / y",
        "fdiv": "x / y",
        "div_rn": "x / y",
        "floor_divide": "x // y",
        "remainder": "x % y",
        "divmod": "(x // y, x % y)",
        "power": "x ** y",
        "float_power": "x ** y",
        "negative": "-x",
        "positive": "x",
        "fabs": "abs(x)",
        "reciprocal": "1.0 / x",
        "square": "x * x",
        "sqrt_rn": "tl.sqrt(x)",
        "cbrt": "tl.where(x < 0.0, -(abs(x) ** (1.0 / 3.0)), abs(x) ** (1.0 / 3.0))",
        "hypot": "tl.sqrt(x * x + y * y)",
        "sign": "tl.where(x > 0.0, 1.0, tl.where(x < 0.0, -1.0, 0.0))",
        "heaviside": "tl.where(x > 0.0, 1.0, tl.where(x < 0.0, 0.0, y))",
        "fmod": "x - y * tl.where(x / y < 0.0, tl.ceil(x / y), tl.floor(x / y))",
        "trunc": "tl.where(x < 0.0, tl.ceil(x), tl.floor(x))",
        "fix": "tl.where(x < 0.0, tl.ceil(x), tl.floor(x))",
        "rint": "tl.round(x)",
        "around": "tl.round(x)",
        "clip": "tl.clamp(x, -1.0, 1.0)",
        "fmax": "tl.maximum(x, y)",
        "fmin": "tl.minimum(x, y)",
        "amax": "tl.max(x, axis=1)",
        "amin": "tl.min(x, axis=1)",
        "relu": "tl.maximum(x, 0.0)",
        # exponentials and angles
        "expm1": "tl.exp(x) - 1.0",
        "log1p": "tl.log(x + 1.0)",
        "log10": "tl.log(x) * 0.4342944819032518",
        "logaddexp": "tl.maximum(x, y) + tl.log(tl.exp(-abs(x - y)) + 1.0)",
        "logaddexp2": "tl.maximum(x, y) + tl.log2(tl.exp2(-abs(x - y)) + 1.0)",
        "tan": "tl.sin(x) / tl.cos(x)",
        "sinh": "(tl.exp(x) - tl.exp(-x)) * 0.5",
        "cosh": "(tl.exp(x) + tl.exp(-x)) * 0.5",
        "arcsinh": "tl.log(x + tl.sqrt(x * x + 1.0))",
        "arccosh": "tl.log(x + tl.sqrt(x * x - 1.0))",
        "arctanh": "tl.log((1.0 + x) / (1.0 - x)) * 0.5",
        "asinh": "tl.log(x + tl.sqrt(x * x + 1.0))",
        "acosh": "tl.log(x + tl.sqrt(x * x - 1.0))",
        "atanh": "tl.log((1.0 + x) / (1.0 - x)) * 0.5",
        "deg2rad": "x * 0.017453292519943295",
        "radians": "x * 0.017453292519943295",
        "rad2deg": "x * 57.29577951308232",
        "degrees": "x * 57.29577951308232",
        # comparisons and bits
        "less": "x < y",
        "less_equal": "x <= y",
        "greater": "x > y",
        "greater_equal": "x >= y",
        "equal": "x == y",
        "not_equal": "x != y",
        "isnan": "x != x",
        "isinf": 'abs(x) == float("inf")',
        "isfinite": 'abs(x) < float("inf")',
        "signbit": "x < 0.0",
        "logical_and": "p & q",
        "logical_or": "p | q",
        "logical_xor": "p ^ q",
        "logical_not": "~p",
        "bitwise_and": "i & j",
        "bitwise_or": "i | j",
        "bitwise_xor": "i ^ j",
        "bitwise_not": "~i",
        "bitwise_invert": "~i",
        "invert": "~i",
        "left_shift": "i << j",
        "bitwise_left_shift": "i << j",
        "right_shift": "i >> j",
        "bitwise_right_shift": "i >> j",
        # reductions
        "mean": "tl.sum(x, axis=1) / x.shape[1]",
        "average": "tl.sum(x, axis=1) / x.shape[1]",
        "var": "tl.sum(x * x, axis=1) / x.shape[1] - (tl.sum(x, axis=1) / x.shape[1]) ** 2.0",
        "any": "tl.max(p.to(tl.int32), axis=1)",
        "all": "tl.min(p.to(tl.int32), axis=1)",
        "reduce_or": "tl.max(p.to(tl.int32), axis=1)",
        "count_nonzero": "tl.sum((x != 0.0).to(tl.int32), axis=1)",
        "ptp": "tl.max(x, axis=1) - tl.min(x, axis=1)",
        "logsumexp": "tl.log(tl.sum(tl.exp(x - tl.max(x, axis=1, keep_dims=True)), axis=1))",
        # products
        "matmul": "tl.dot(x, y.T)",
        "inner": "tl.dot(x, y.T)",
        "vecdot": "tl.sum(x * y, axis=1)",
        "outer": "tl.expand_dims(x[0], 1) * tl.expand_dims(y[0], 0)",
        # shapes
        "permute": "tl.trans(x, 1, 0)",
        "transpose": "tl.trans(x)",
        "swapaxes": "tl.trans(x)",
        "view": "tl.reshape(x, (x.shape[1], x.shape[0]))",
        "ravel": "tl.reshape(x, (x.shape[0] * x.shape[1],))",
        "flatten": "tl.reshape(x, (x.shape[0] * x.shape[1],))",
        "squeeze": "x[0]",
        "unsqueeze": "tl.expand_dims(x, 0)",
        "partition": "tl.sort(x)",
        "index_select": "tl.gather(x, i, 1)",
        "umulhi": "tl.mulhi(i.to(tl.uint32), j.to(tl.uint32))",
        "dropout": "tl.where(tl.rand(7, i) > 0.1, x / 0.9, 0.0)",
        "random": "tl.rand(7, i)",
        # creation
        "zeros_like": "tl.zeros(x.shape, x.dtype)",
        "ones": "tl.full((128, 64), 1.0, tl.float32)",
        "ones_like": "tl.full(x.shape, 1.0, x.dtype)",
        "full_like": "tl.full(x.shape, 2.0, x.dtype)",
        "empty_like": "tl.empty(x.shape, x.dtype)",
        "astype": "x.to(tl.float16)",
        "copy": "tl.copy_to(x, y)",
        "int1": "tl.bool",
        "half": "tl.float16",
        "double": "tl.float64",
        "long": "tl.int64",
        "ulong": "tl.uint64",
        "float8e4nv": "tl.float8e4m3",
        "float8e5": "tl.float8e5m2",
    }
)

_NO_SEARCH = (
    "there is none: the engines sort and gather within a tile (tl.sort, tl.topk, tl.gather), and search nothing else"
)
_PIECES = "there is none: take `out = tl.empty(shape, dtype)` and write each part with `tl.copy_to(out[a:b, :], part)`"
_HALVES = "there is none: a view such as h[:, 0:64] is a part without a copy; views have no steps"
_INDEX = "there is none: index the tensor itself, `tl.load(t[i : i + 128, :])`"
_ATOMIC = "there is none: what is done to HBM as one step is tl.atomic_add, tl.atomic_max and tl.atomic_min"
_RANDOM = "there is none: tl.randint, tl.rand, tl.randn and tl.randint4x are made of Philox"
_HINT = "leave it out: shapes, offsets and arguments are known while tracing"
_TYPE = "leave it out: nothing in a kernel is declared; handles have .shape and .dtype"
_FUNCTION = "there is none: only the operations of tl reduce and scan, such as tl.sum, tl.max, tl.cumsum and tl.cumprod"
_DTYPES = (
    "there is none: the dtypes are f64, f32, f16, bf16, f8e4m3, f8e5m2, i64, i32, i16, i8, u64, u32, u16, u8 and bool"
)
_HOST = "there is none among the engines' operations: compute it on the host and pass it as an argument"
_PROGRAM = "leave it out: commands wait for what they read, and the scheduler orders them"
_NO_MODULE = "there is none: what tl has is in tl itself"
_MESSAGES = "there is none: send the tile from rank to rank with tl.send and tl.recv"
_COLLECTIVES = (
    "there is none: the kernels all_gather, all_reduce and reduce_scatter of kernscope.kernels are made of sends; "
    "kernscope.kernels.collectives has their parts, gathered(line, tiles) and reduced(line, parts)"
)
_COMPLEX = "there is none: no dtype is complex"

#: By reason the names for which there is nothing to write.
_REASONS: Mapping[str, str] = {
    _NO_SEARCH: "argsort bitonic_merge histogram unique "
    "searchsorted nonzero argwhere "
    "median nanmedian quantile percentile swizzle2d bincount",
    _PIECES: "cat concatenate concat stack vstack hstack tile repeat pad roll",
    _HALVES: "array_split chunk",
    _INDEX: "make_block_ptr advance make_tensor_descriptor tensor_descriptor "
    "load_tensor_descriptor store_tensor_descriptor",
    _ATOMIC: "atomic_and atomic_cas atomic_or atomic_xchg atomic_xor atomic_load atomic_store atomic_poll",
    _RANDOM: "philox philox_impl pair_uniform_to_normal uint_to_uniform_float",
    _HINT: "assume multiple_of max_contiguous max_constancy condition TRITON_MAX_TENSOR_NUMEL PropagateNan target_info",
    _TYPE: "tensor tensor_type block_type pointer_type pi32_t void const constexpr_type tuple tuple_type slice scalar "
    "to_tensor base_type base_value",
    _FUNCTION: "map_elementwise prod product xor_sum nanprod cummax cummin",
    _DTYPES: "float8e4b15 float8e4b8 float8e5b16 int4 uint4 complex64 complex128",
    _HOST: "arcsin arccos arctan arctan2 asin acos atan atan2 frexp ldexp modf "
    "nextafter spacing copysign gcd lcm "
    "bitwise_count isnat linspace eye",
    _PROGRAM: "debug_barrier async_task warp_specialize fence",
    _NO_MODULE: "core extra libdevice semantic standard inline_asm_elementwise",
    _MESSAGES: "multicast broadcast_send all_to_all",
    _COLLECTIVES: "all_gather allgather all_reduce allreduce reduce_scatter",
    _COMPLEX: "conj conjugate real imag angle",
    "take the root of the variance: tl.sqrt(tl.sum(d * d, axis=1) / n) with d = x - mean": "std nanstd",
    "choose first: tl.sum(tl.where(x == x, x, 0.0), axis=1)": "nansum nanmean nanvar nancumsum",
    'choose first: tl.max(tl.where(x == x, x, float("-inf")), axis=1)': "nanmax nanargmax",
    'choose first: tl.min(tl.where(x == x, x, float("inf")), axis=1)': "nanmin nanargmin",
    "there is none: dequantise with tl.cast and a product, then tl.dot": "dot_scaled",
    "multiply and reduce: tl.sum(a * v, axis=1), or tl.dot with a second dimension of 1": "matvec vecmat einsum "
    "tensordot",
    "leave it out: keyword arguments are Python values": "constexpr",
    "its functions are tl's own: tl.exp(x), tl.sqrt(x), tl.erf(x)": "math",
    'there is none to call: a dtype is tl.float32, tl.float16, tl.int32, ..., or its name, "f32"': "dtype",
    "write Python's own assert: shapes and arguments are Python values": "static_assert",
    "write Python's own range: a loop is unrolled by running it": "range",
    "write Python's own print: shapes and arguments are Python values": "static_print",
    "there is none: values are there after ks.run, where numpy asserts": "device_assert",
    "there is none: values are there after ks.run; print the handle for its shape, dtype and address": "device_print",
}
NOT_THERE: Mapping[str, str] = MappingProxyType(
    {name: reason for reason, names in _REASONS.items() for name in names.split()}
)


def answer(name: str) -> str | None:
    """The ``help:`` text for a foreign name; None for one that means nothing here."""
    return f"write {WRITE[name]}" if name in WRITE else NOT_THERE.get(name)
