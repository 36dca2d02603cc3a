"""``triton._internal_testing``: what Triton's own tests import. Targets answer as the machine does in the place of a
GPU; arrays are made of random numbers as there, so that tests meet what they were written for."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.errors import ArgumentError, TritonNameError, shown
from .driver import CAPABILITY, Driver
from .tensors import TensorWrapper, reinterpret

__all__ = ["CANONICAL_TYPES", "internal_testing"]

_INTS = ["int8", "int16", "int32", "int64"]
_UINTS = ["uint8", "uint16", "uint32", "uint64"]
_FLOATS = ["float16", "float32", "float64"]
_ALL = [*_INTS, *_UINTS, *_FLOATS]
#: torch's and numpy's names of types, and Triton's.
CANONICAL_TYPES = {
    "bool": "i1",
    "int1": "i1",
    "uint1": "u1",
    "i1": "i1",
    "bfloat16": "bf16",
    "float16": "fp16",
    "float32": "fp32",
    "float64": "fp64",
    "half": "fp16",
    "float": "fp32",
    "double": "fp64",
    "float8_e4m3fn": "fp8e4nv",
    "float8e4nv": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "float8e5": "fp8e5",
    "float8_e4m3fnuz": "fp8e4b8",
    "float8e4b8": "fp8e4b8",
    "float8_e5m2fnuz": "fp8e5b16",
    "float8e5b16": "fp8e5b16",
    "float8e4b15": "fp8e4b15",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    "void": "void",
}


def numpy_random(shape: Any, dtype_str: str, rs: Any = None, low: Any = None, high: Any = None) -> Any:
    """An array of random numbers: integers over their whole range but 0, floats that are normal."""
    shape = (shape,) if isinstance(shape, int) else shape
    rs = np.random.RandomState(seed=17) if rs is None else rs
    if dtype_str in (*_INTS, *_UINTS):
        limits = np.iinfo(dtype_str)
        least = limits.min if low is None else max(low, limits.min)
        most = limits.max if high is None else min(high, limits.max)
        found = rs.randint(least, most, shape, dtype=np.dtype(dtype_str))
        found[found == 0] = 1  # nobody divides by zero by accident
        return found
    if "float8" in (dtype_str or ""):
        return rs.randint(20, 40, shape, dtype=np.int8)
    if dtype_str in _FLOATS:
        return rs.normal(0, 1, shape).astype(dtype_str)
    if dtype_str == "bfloat16":
        bits = rs.normal(0, 1, shape).astype(np.float32).view(np.uint32)
        return (bits & np.uint32(0xFFFF0000)).view(np.float32)
    if dtype_str in ("bool", "int1", "bool_"):
        return rs.normal(0, 1, shape) > 0.0
    raise ArgumentError(f"numpy_random of {shown(dtype_str)}", help=f"it knows: {', '.join(_ALL)}, bfloat16, bool")


def _to_numpy(x: Any) -> Any:
    torch: Any = sys.modules["torch"]
    if isinstance(x, TensorWrapper):
        return x.base.cpu().numpy().astype(getattr(np, x.dtype.name))
    if not isinstance(x, torch.Tensor):
        raise ValueError(f"Not a triton-compatible tensor: {x}")
    return x.cpu().float().numpy() if x.dtype is torch.bfloat16 else x.cpu().numpy()


def _unwrap_tensor(t: Any) -> Any:
    return t.base if isinstance(t, TensorWrapper) else t


def _dtype_name(dtype: Any) -> str:
    return str(getattr(dtype, "name", None) or re.sub(r"^torch\.", "", str(dtype)))


def _default_alloc_fn(size: int, align: int, _: Any) -> Any:
    torch: Any = sys.modules["torch"]
    return torch.empty(size, dtype=torch.int8, device="cuda")


def _no_compiler(*_: Any, **__: Any) -> Any:
    raise TritonNameError(
        "triton._internal_testing.run_in_process is refused by kernscope: a process of its own is outside the session",
        help="run it with pytest --kernscope-triton as a test of its own",
    )


def _fresh_knobs(knobs: Any, skipped: Any = None) -> tuple[Callable[[], Any], Callable[[], None]]:
    """Two functions: the first makes all settings new, the second brings the old ones back."""
    groups = {
        name: group
        for name, group in vars(knobs).items()
        if isinstance(group, knobs.base_knobs) and name not in (skipped or ())
    }
    keys = {knob.key for group in groups.values() for knob in group.knob_descriptors.values()}
    before = {key: os.environ.get(key) for key in keys}

    def fresh() -> Any:
        for name, group in groups.items():
            setattr(knobs, name, group.copy().reset())
        for key in keys:
            os.environ.pop(key, None)
        return knobs

    def back() -> None:
        for name, group in groups.items():
            setattr(knobs, name, group)
        for key, value in before.items():
            os.environ.pop(key, None)
            if value is not None:
                os.environ[key] = value

    return fresh, back


def _mark(skip: bool, reason: str) -> Any:
    pytest: Any = sys.modules.get("pytest")
    return (lambda function: function) if pytest is None else pytest.mark.skipif(skip, reason=reason)


def internal_testing(language: Any, knobs: Any, driver: Driver) -> dict[str, Any]:
    """The module's names, of a session's language, settings and driver."""

    def is_interpreter() -> bool:
        return os.environ.get("TRITON_INTERPRET", "0") == "1"

    def is_(backend: str) -> Callable[[], bool]:
        return lambda: not is_interpreter() and driver.active.get_current_target().backend == backend

    def at_least(capability: int) -> Callable[[], bool]:
        return lambda: is_("cuda")() and CAPABILITY[0] >= capability

    def exactly(capability: int) -> Callable[[], bool]:
        return lambda: is_("cuda")() and CAPABILITY[0] == capability

    def to_triton(x: Any, device: Any, dst_type: Any = None) -> Any:
        torch: Any = sys.modules["torch"]
        name = x.dtype.name
        if name in _UINTS:
            return reinterpret(torch.tensor(x.astype(name.lstrip("u")), device=device), getattr(language, name))
        if dst_type and "float8" in dst_type:
            return reinterpret(torch.tensor(x, device=device), getattr(language, dst_type))
        made = torch.tensor(x, device=device)
        return made.bfloat16() if name == "float32" and dst_type == "bfloat16" else made

    def supports_tma(byval_only: bool = False) -> bool:
        return True  # descriptors run, on the host and in kernels

    def fresh_knobs(skipped_attr: Any = None) -> Any:
        return _fresh_knobs(knobs, skipped_attr)

    nowhere = [
        *("is_hip_cdna", "is_hip_cdna2", "is_hip_cdna3", "is_hip_cdna4", "is_hip_cdna3_or_newer", "is_hip_rdna"),
        *("is_hip_rdna3", "is_hip_rdna4", "is_hip_gfx1250", "is_blackwell_ultra", "supports_ws"),
    ]
    return {
        "int_dtypes": list(_INTS),
        "uint_dtypes": list(_UINTS),
        "integral_dtypes": [*_INTS, *_UINTS],
        "float_dtypes": list(_FLOATS),
        "float_dtypes_with_bfloat16": [*_FLOATS, "bfloat16"],
        "dtypes": list(_ALL),
        "dtypes_with_bfloat16": [*_ALL, "bfloat16"],
        "torch_float8_dtypes": ["float8_e4m3fn", "float8_e5m2"],
        "torch_dtypes": ["bool", *_INTS, "uint8", *_FLOATS, "bfloat16"],
        "tma_dtypes": sorted({*_ALL, "bfloat16"} - {"int64", "uint64", "float64"}),
        "is_interpreter": is_interpreter,
        "get_current_target": driver.active.get_current_target,
        "is_cuda": is_("cuda"),
        "is_cpu": is_("cpu"),
        "is_hip": is_("hip"),
        "is_xpu": is_("xpu"),
        "is_ampere_or_newer": at_least(8),
        "is_hopper_or_newer": at_least(9),
        "is_hopper": exactly(9),
        "is_blackwell": exactly(10),
        "is_sm12x": exactly(12),
        **{name: lambda: False for name in nowhere},
        "get_hip_lds_size": lambda: 65536,
        "numpy_random": numpy_random,
        "to_triton": to_triton,
        "to_numpy": _to_numpy,
        "str_to_triton_dtype": lambda x: language.str_to_ty(CANONICAL_TYPES[x], None),
        "torch_dtype_name": _dtype_name,
        "unwrap_tensor": _unwrap_tensor,
        "supports_tma": supports_tma,
        "tma_skip_msg": lambda byval_only=False: "",
        "requires_tma": _mark(not supports_tma(), ""),
        "default_alloc_fn": _default_alloc_fn,
        "run_in_process": _no_compiler,
        "_fresh_knobs_impl": fresh_knobs,
    }
