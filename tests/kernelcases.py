"""The kernels that come with kernscope, their launches, and inputs for them, as tests use them."""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import kernscope as ks

__all__ = ["KERNELS", "NAIVE", "kernel_of", "launches", "numbers"]

KERNELS = (
    "vector_add",
    "matmul",
    "softmax",
    "layer_norm",
    "rms_norm",
    "all_gather",
    "reduce_scatter",
    "all_reduce",
    "flash_attention",
    "flash_attention_prefetch",
    "gqa_attention_prefill_short",
    "gqa_attention_prefill_long",
    "gqa_attention_decode_short",
    "gqa_attention_decode_long",
)
NAIVE = ("gqa_attention_prefill_long_naive", "gqa_attention_decode_long_naive")
#: Launches that take more than a few seconds.
SLOW = (
    "matmul:2k",
    "flash_attention:2k-causal",
    "gqa_attention_prefill_short:1k",
    "gqa_attention_prefill_short:8k",
    "gqa_attention_prefill_long:8k",
    "gqa_attention_prefill_long:32k",
    "gqa_attention_prefill_long:128k",
    "gqa_attention_decode_long:32k",
    "gqa_attention_decode_long:128k",
)


def kernel_of(module: str) -> ks.Kernel:
    """The one kernel that a module of ``kernscope.kernels`` defines."""
    name = f"{module}_kernel" if module.startswith("gqa") else module
    kernel = getattr(importlib.import_module(f"kernscope.kernels.{module}"), name)
    assert isinstance(kernel, ks.Kernel)
    return kernel


def launches(modules: Sequence[str], *, without: Sequence[str] = ()) -> list[Any]:
    """All launches of some modules as parameters of a test, those of :data:`SLOW` marked so."""
    found = []
    for module in modules:
        for name, launch in kernel_of(module).launches.items():
            title = f"{module}:{name}"
            if title not in without:
                found.append(pytest.param(launch, id=title, marks=[pytest.mark.slow] if title in SLOW else []))
    return found


def numbers(launch: ks.Launch) -> dict[str, Any]:
    """Normally distributed inputs for the tensors of a launch that its kernel only reads."""
    rng = np.random.default_rng(0)
    return {
        name: rng.standard_normal(value.shape).astype(value.dtype.numpy)
        for name, value in launch.arguments.items()
        if hasattr(value, "layout") and name not in ("o", "c")
    }
