"""Values of the host as arguments of a launch: numpy arrays, tensors of torch on the CPU, numbers, descriptors."""

from __future__ import annotations

import sys
from typing import Any

import attrs
import ml_dtypes
import numpy as np

from ....ir.errors import ArgumentError, TritonDescriptorError, shown
from ..arguments import DescriptorArgument, TensorArgument
from ..constexpr import Constexpr, bare
from ..values.types import MissingType, Type
from .session_state import current_session

__all__ = [
    "TensorDescriptor",
    "TensorWrapper",
    "is_dense",
    "is_torch_tensor",
    "launch_argument",
    "reinterpret",
    "tensor_argument",
]

Array = np.ndarray[Any, np.dtype[Any]]
#: torch's dtypes that numpy lacks: an integer of the same size, and who has the dtype.
_TWINS = {
    "bfloat16": ("int16", ml_dtypes.bfloat16),
    "float8_e4m3fn": ("uint8", ml_dtypes.float8_e4m3fn),
    "float8_e4m3fnuz": ("uint8", ml_dtypes.float8_e4m3fnuz),
    "float8_e5m2": ("uint8", ml_dtypes.float8_e5m2),
    "float8_e5m2fnuz": ("uint8", ml_dtypes.float8_e5m2fnuz),
}
_INT64 = range(-(2**63), 2**64)


def launch_argument(value: Any, *, specialise: bool = True) -> Any:
    """An argument as a launch takes it. ``specialise``: an integer 1 is known when the kernel is compiled.

    Raises ``ArgumentError`` for what a kernel cannot take.
    """
    value = bare(value)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        number = int(value)
        if number not in _INT64:
            raise ArgumentError(f"{number} does not fit 64 bits", help="pass a smaller integer")
        return Constexpr(1) if specialise and number == 1 else number
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, tuple | list):
        items = [launch_argument(item, specialise=specialise) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, TensorDescriptor):
        return value.argument()
    if isinstance(value, np.ndarray) or hasattr(value, "data_ptr"):
        return tensor_argument(value)
    return Constexpr(value)


def is_torch_tensor(value: Any) -> bool:
    """Whether a value is a tensor of torch's; False where torch is not loaded."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_dense(tensor: Any) -> bool:
    """Whether a tensor of torch's has numbers in a memory of its own; kernels see that memory, and no bit that says
    that its numbers are to be negated."""
    return not (is_torch_tensor(tensor) and (tensor.is_sparse or tensor.is_quantized or tensor.is_complex()))


def tensor_argument(value: Any) -> TensorArgument:
    """A tensor's memory and its place in it. Raises ``ArgumentError`` for what has none that numpy can see."""
    if isinstance(value, TensorWrapper):
        base = tensor_argument(value.base)
        width = numpy_dtype(value.dtype)
        if base.memory.dtype.itemsize != width.itemsize:
            raise ArgumentError(
                f"triton.reinterpret of {base.memory.dtype} as {width}", help="both must have one number of bytes"
            )
        return attrs.evolve(base, memory=base.memory.view(width))
    if isinstance(value, np.ndarray):
        return _of_array(value)
    return _of_torch(value) if is_torch_tensor(value) else _of_pointer(value)


def _of_pointer(value: Any) -> TensorArgument:
    """Of what a library has made that has an address and a dtype, as Triton takes it: the address is one in the memory
    of a tensor that has been asked for its own."""
    address, known = int(value.data_ptr()), current_session().addresses
    width = numpy_dtype(value.dtype)
    exact = [known[address]] if address in known else []
    for reference in (*exact, *known.values()):
        tensor = reference()
        if tensor is None:
            continue
        base = tensor_argument(tensor)
        first = address - base.address
        if not 0 <= first < base.memory.nbytes or base.memory.dtype.itemsize != width.itemsize:
            continue
        shape = tuple(int(n) for n in getattr(value, "shape", base.shape))
        strides = tuple(int(n) for n in value.stride()) if hasattr(value, "stride") else base.strides
        return TensorArgument(base.memory.view(width), first // width.itemsize, shape, strides, base.address)
    raise ArgumentError(f"{shown(value)} is no tensor", help="pass a torch tensor or a numpy array")


def _of_array(array: Array) -> TensorArgument:
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    if base.dtype != array.dtype or not (base.flags.c_contiguous or base.flags.f_contiguous):
        base = array
    if not (base.flags.c_contiguous or base.flags.f_contiguous):
        raise ArgumentError(
            f"an array of shape {array.shape} and strides {array.strides} without the memory it is a view of",
            help="pass a view of an array that is contiguous: np.ascontiguousarray(array)",
        )
    memory = base.reshape(-1, order="A")
    address = memory.__array_interface__["data"][0]
    offset = array.__array_interface__["data"][0] - address
    strides = tuple(step // array.itemsize for step in array.strides)
    return TensorArgument(memory, offset // array.itemsize, array.shape, strides, address)


def _of_torch(tensor: Any) -> TensorArgument:
    torch: Any = sys.modules["torch"]
    with torch._C.DisableTorchFunction():
        tensor = tensor.detach()
        if tensor.device.type != "cpu":
            raise ArgumentError(
                f"a tensor on {tensor.device}",
                help="kernscope runs kernels on the CPU: make tensors inside the session",
            )
        if not is_dense(tensor):
            raise ArgumentError(f"a tensor of {tensor.dtype}, {tensor.layout}", help="pass a dense tensor of numbers")
        storage = tensor.untyped_storage()
        count = storage.nbytes() // tensor.element_size()
        whole = torch.empty(0, dtype=tensor.dtype).set_(storage, 0, (count,), (1,))
        name = str(tensor.dtype).removeprefix("torch.")
        twin = _TWINS.get(name)
        memory = whole.numpy() if twin is None else whole.view(getattr(torch, twin[0])).numpy().view(twin[1])
        return TensorArgument(
            memory, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()), storage.data_ptr()
        )


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """The numpy dtype of torch's, Triton's or numpy's own."""
    name = str(dtype).removeprefix("torch.").removeprefix("tl.")
    twin: Any = dtype.numpy if isinstance(dtype, Type | MissingType) else None
    if twin is None:
        twin = _TWINS[name][1] if name in _TWINS else name
    made: np.dtype[Any] = np.dtype(twin)
    return made


class TensorWrapper:
    """``triton.reinterpret(tensor, dtype)``: a tensor's bits as another dtype's."""

    def __init__(self, base: Any, dtype: Any) -> None:
        self.base, self.dtype = base, dtype
        self.data, self.device, self.shape = base.data, base.device, base.shape

    def data_ptr(self) -> int:
        """The address."""
        return int(self.base.data_ptr())

    def stride(self, *args: Any) -> Any:
        """The strides in elements."""
        return self.base.stride(*args)

    def element_size(self) -> int:
        """The bytes of an element."""
        return int(self.base.element_size())

    def cpu(self) -> TensorWrapper:
        """A copy on the CPU."""
        return TensorWrapper(self.base.cpu(), self.dtype)

    def to(self, device: Any) -> TensorWrapper:
        """On a device."""
        return TensorWrapper(self.base.to(device), self.dtype)

    def clone(self) -> TensorWrapper:
        """A copy."""
        return TensorWrapper(self.base.clone(), self.dtype)

    def copy_(self, other: TensorWrapper) -> None:
        """Take over the elements of another one."""
        self.base.copy_(other.base)


def reinterpret(tensor: Any, dtype: Any) -> Any:
    """A tensor's bits as another dtype's; of such a tensor, the tensor itself where that is its own dtype."""
    if isinstance(tensor, TensorWrapper):
        return tensor.base if dtype == tensor.base.dtype else TensorWrapper(tensor.base, dtype)
    if hasattr(tensor, "data_ptr"):
        return TensorWrapper(tensor, dtype)
    raise ArgumentError(f"triton.reinterpret of {shown(tensor)}", help="pass a tensor")


@attrs.define(eq=False)
class TensorDescriptor:
    """``triton.tools.tensor_descriptor.TensorDescriptor``. What Triton asserts of one is asserted here."""

    base: Any
    shape: Any
    strides: Any
    block_shape: Any
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __attrs_post_init__(self) -> None:
        rank = len(self.shape)
        if not 1 <= rank <= 5 or len(self.strides) != rank or len(self.block_shape) != rank:
            raise TritonDescriptorError(
                f"a descriptor of shape {list(self.shape)}, strides {list(self.strides)} and block shape "
                f"{list(self.block_shape)}",
                help="the three have one length, from 1 to 5",
            )
        itemsize = tensor_argument(self.base).memory.dtype.itemsize if hasattr(self.base, "shape") else 1
        if self.strides[-1] != 1 or any(step * itemsize % 16 for step in self.strides[:-1]):
            raise TritonDescriptorError(
                f"a descriptor of strides {list(self.strides)} with elements of {itemsize} bytes",
                help="the last dimension must be contiguous, and other strides multiples of 16 bytes",
            )
        if any(size <= 0 for size in self.shape):
            raise TritonDescriptorError(f"a descriptor of shape {list(self.shape)}", help="sizes are positive")
        if self.padding not in ("zero", "nan"):
            raise TritonDescriptorError(f"padding={self.padding!r}", help='it is "zero" or "nan"')

    @staticmethod
    def from_tensor(tensor: Any, block_shape: Any, padding: str = "zero", round_f32_to_tf32: bool = False) -> Any:
        """Of a whole tensor."""
        strides = tensor.stride() if hasattr(tensor, "stride") else tensor_argument(tensor).strides
        return TensorDescriptor(tensor, tensor.shape, strides, block_shape, padding, round_f32_to_tf32)

    def argument(self) -> DescriptorArgument:
        """As a launch takes it."""
        shape, strides, block = ([int(bare(n)) for n in row] for row in (self.shape, self.strides, self.block_shape))
        return DescriptorArgument(tensor_argument(self.base), tuple(shape), tuple(strides), tuple(block), self.padding)
