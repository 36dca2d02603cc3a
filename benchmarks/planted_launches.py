"""The launches of ``planted_faults.py``: small ones, on sizes that no block divides."""

from __future__ import annotations

import attrs

__all__ = ["LAUNCHES", "PlantedLaunch"]

_TUTORIALS = "python/tutorials"
_LIGER = "src/liger_kernel/ops"
_HEAD = """
import numpy as np
rng = np.random.default_rng(0)
def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)
"""


@attrs.frozen
class PlantedLaunch:
    """The ``file`` of a ``project`` with the kernel, what is said ``before`` its source is run (functions that the file
    takes from where this version of Triton has them), and the ``call``."""

    project: str
    file: str
    call: str
    before: str = _HEAD


LAUNCHES = {
    "add": PlantedLaunch(
        "triton",
        f"{_TUTORIALS}/01-vector-add.py",
        "add_kernel[(4,)](f32(1000), f32(1000), f32(1000), 1000, BLOCK_SIZE=256)",
    ),
    "softmax": PlantedLaunch(
        "triton",
        f"{_TUTORIALS}/02-fused-softmax.py",
        "softmax_kernel[(2,)](f32(6, 100), f32(6, 100), 100, 100, 6, 100, BLOCK_SIZE=128, num_stages=2)",
    ),
    "matmul": PlantedLaunch(
        "triton",
        f"{_TUTORIALS}/03-matrix-multiplication.py",
        """
a, b, c = f32(80, 40).astype(np.float16), f32(40, 48).astype(np.float16), np.zeros((80, 48), np.float16)
matmul_kernel[(6,)](a, b, c, 80, 48, 40, 40, 1, 48, 1, 48, 1, BLOCK_SIZE_M=32, BLOCK_SIZE_N=32, BLOCK_SIZE_K=16,
                    GROUP_SIZE_M=2, ACTIVATION="")
""",
    ),
    "dropout": PlantedLaunch(
        "triton",
        f"{_TUTORIALS}/04-low-memory-dropout.py",
        "_dropout[(4,)](f32(1000), rng.integers(0, 2, 1000).astype(np.int32), f32(1000), 1000, 0.5, BLOCK_SIZE=256)",
    ),
    "norm": PlantedLaunch(
        "triton",
        f"{_TUTORIALS}/05-layer-norm.py",
        """
_layer_norm_fwd_fused[(5,)](f32(5, 100), f32(5, 100), f32(100), f32(100), f32(5), f32(5), 100, 100, 1e-5, BLOCK_SIZE=64)
""",
    ),
    "norm dx": PlantedLaunch(
        "triton",
        f"{_TUTORIALS}/05-layer-norm.py",
        """
lock = np.zeros(4, np.int32)
dx, dy, x = (f32(6, 100) for _ in range(3))
_layer_norm_bwd_dx_fused[(6,)](dx, dy, f32(2, 100), f32(2, 100), x, f32(100), f32(6), f32(6), lock, 100, 100,
                               GROUP_SIZE_M=2, BLOCK_SIZE_N=128)
""",
    ),
    "norm dwdb": PlantedLaunch(
        "triton",
        f"{_TUTORIALS}/05-layer-norm.py",
        """
_layer_norm_bwd_dwdb[(4,)](f32(5, 100), f32(5, 100), f32(100), f32(100), 5, 100, BLOCK_SIZE_M=4, BLOCK_SIZE_N=32)
""",
    ),
    "rms norm": PlantedLaunch(
        "liger",
        f"{_LIGER}/rms_norm.py",
        """
_rms_norm_forward_kernel[(5,)](f32(5, 100), 100, f32(5, 100), 100, f32(100), 1, f32(5), 1, 100, 1e-6, 0.0,
                               casting_mode=0, elementwise_affine=True, BLOCK_SIZE=128)
""",
        _HEAD + "from triton.language.extra.libdevice import rsqrt\n",
    ),
    "swiglu": PlantedLaunch(
        "liger",
        f"{_LIGER}/swiglu.py",
        "_swiglu_forward_kernel[(5,)](f32(5, 100), f32(5, 100), f32(5, 100), 100, 1.0, n_cols=100, BLOCK_SIZE=128)",
    ),
    "rope": PlantedLaunch(
        "liger",
        f"{_LIGER}/rope.py",
        """
q, k, cos, sin = f32(2, 4, 3, 12), f32(2, 4, 2, 12), f32(1, 4, 12), f32(1, 4, 12)
_triton_rope[(8,)](q, 36, k, 24, cos, 12, sin, 12, 4, bs=2, cos_bs=1, n_qh=3, n_kh=2, hd=12, pad_n_qh=4, pad_n_kh=2,
                   pad_hd=16, BLOCK_SIZE=4)
""",
    ),
    "kl": PlantedLaunch(
        "liger",
        f"{_LIGER}/kl_div.py",
        """
stride, rows = 1 << 29, 5
far = np.zeros(stride * (rows - 1) + 100, np.int8).view(np.uint8)
_kldiv_kernel_forward[(rows,)](f32(rows, 100), 100, far, stride, f32(rows), 1, 100, 1e-10, BLOCK_SIZE=64)
""",
    ),
    "tvd": PlantedLaunch(
        "liger",
        f"{_LIGER}/tvd.py",
        """
labels = np.array([1, 0, 3, 0, 5])
_tv_distance_kernel[(5,)](f32(5, 100), 100, f32(5, 100), 100, f32(5), 1, f32(5, 100), 100, labels, ignore_index=0,
                          n_cols=100, scale=0.2, BLOCK_SIZE=64, HAS_LABEL=True)
""",
    ),
    "dyt": PlantedLaunch(
        "liger",
        f"{_LIGER}/dyt.py",
        """
_dyt_bwd_kernel[(1, 2)](f32(6, 100), f32(6, 100), f32(2, 1), f32(2, 100), f32(2, 100), f32(6, 100), f32(1), f32(100),
                        HAVE_BETA=True, M=6, N=100, BLOCK_N=128)
""",
        _HEAD + "from triton.language.extra.libdevice import tanh\n",
    ),
}
