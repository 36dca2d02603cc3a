"""``triton.tools.mxfp``: what scripts make of numbers for block-scaled products, after the Open Compute Project's
microscaling formats (OCP MX 1.0): 4-bit floats (e2m1) and scales that are powers of two (e8m0)."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np

from ....ir.errors import ArgumentError, shown

__all__ = ["MXFP4Tensor", "MXScaleTensor"]

_E2M1, _E8M0 = np.dtype(ml_dtypes.float4_e2m1fn), np.dtype(ml_dtypes.float8_e8m0fnu)
_BIAS = 127
_LARGEST = np.float32(6)


class _Encoded:
    """A tensor of torch's with a byte an element. Made of numbers (``data``), or of a ``size``, to be filled by
    ``random``."""

    data: Any

    def __init__(self, data: Any = None, size: Any = None, device: Any = None) -> None:
        if data is None and size is None:
            raise ValueError("Either parameter data or size must be provided")
        self.device = device
        self.size = size if size is None or isinstance(size, tuple) else (size,)
        if data is not None:
            torch: Any = sys.modules["torch"]
            if not isinstance(data, torch.Tensor):
                raise ArgumentError(f"data={shown(data)}", help="pass a tensor of torch's, of float32")
            self.device = data.device
            found = self._encoded(data.detach().float().cpu().numpy())
            self.data = torch.from_numpy(found).to(data.device)

    @staticmethod
    def _encoded(numbers: Any) -> Any:
        raise NotImplementedError

    @staticmethod
    def _decoded(codes: Any) -> Any:
        raise NotImplementedError

    def to(self, dtype: Any) -> Any:
        """The numbers, as f32. Raises ``ArgumentError`` for another dtype."""
        torch: Any = sys.modules["torch"]
        if dtype is not torch.float32:
            raise ArgumentError(f"to({dtype}) of a microscaling tensor", help="it gives torch.float32")
        return torch.from_numpy(self._decoded(self.data.cpu().numpy())).to(self.data.device)


class MXFP4Tensor(_Encoded):
    """Numbers of 4 bits (e2m1), a byte each in ``data``."""

    @staticmethod
    def _encoded(numbers: Any) -> Any:
        finite = np.where(np.isfinite(numbers), numbers, np.copysign(_LARGEST, numbers))
        found: Any = finite.astype(np.float32).astype(_E2M1).view(np.uint8)
        return found

    @staticmethod
    def _decoded(codes: Any) -> Any:
        return codes.view(_E2M1).astype(np.float32)

    def random(self) -> MXFP4Tensor:
        """Any of the 16 codes."""
        torch: Any = sys.modules["torch"]
        self.data = torch.randint(0, 16, size=self.size, dtype=torch.uint8, device=self.device)
        return self

    def to_packed_tensor(self, dim: int) -> Any:
        """Two elements a byte along a dimension, the first one in the low bits; an odd one beside zero."""
        torch: Any = sys.modules["torch"]
        data = self.data
        dim %= data.dim()
        if data.shape[dim] % 2:
            shape = list(data.shape)
            shape[dim] = 1
            data = torch.cat([data, torch.zeros(shape, dtype=data.dtype, device=data.device)], dim)
        pairs = data.unflatten(dim, (-1, 2))
        return pairs.select(dim + 1, 0) | pairs.select(dim + 1, 1) << 4

    def unpack_packed_tensor(self, packed_tensor: Any, dim: int, original_shape: Any) -> Any:
        """A byte an element again."""
        torch: Any = sys.modules["torch"]
        dim %= packed_tensor.dim()
        both = torch.stack([packed_tensor & 15, packed_tensor >> 4], dim + 1).flatten(dim, dim + 1)
        return both.narrow(dim, 0, original_shape[dim]).type(torch.uint8)


class MXScaleTensor(_Encoded):
    """Powers of two (e8m0) in ``data``: the exponent, of which 127 stands for 1, and 255 for NaN."""

    @staticmethod
    def _encoded(numbers: Any) -> Any:
        # Rounded down to a power of two, as Triton's does; what has none is NaN.
        good = np.isfinite(numbers) & (numbers > 0)
        exponents = np.frexp(np.where(good, numbers, 1))[1] - 1
        return np.where(good, np.clip(exponents + _BIAS, 0, 254), 255).astype(np.uint8)

    @staticmethod
    def _decoded(codes: Any) -> Any:
        return codes.view(_E8M0).astype(np.float32)

    def random(self, low: float | None = None, high: float | None = None) -> MXScaleTensor:
        """Powers of two between two numbers."""
        torch: Any = sys.modules["torch"]
        least = 0 if low is None else max(0, int(np.log2(low)) + _BIAS)
        most = 254 if high is None else min(254, max(0, int(np.log2(high)) + _BIAS))
        if least > most:
            raise ArgumentError(f"random(low={low}, high={high})", help="low is the smaller one")
        self.data = torch.randint(least, most + 1, size=self.size, dtype=torch.uint8, device=self.device)
        return self
