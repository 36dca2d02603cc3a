"""The memory of a launch: one storage for each allocation and dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir import dtypes
from ....ir.layout import Layout
from ..arguments import TensorArgument

__all__ = ["Storage", "Storages"]

Array = np.ndarray[Any, np.dtype[Any]]


class Storage:
    """All elements of an allocation, as one dtype. ``layout`` has the dense shape of the tensor that it was first given
    by, where that is all of it; ``before`` is a copy
    from before the launch, where there was room for it. ``is_argument``: the kernel was given it; others it found by
    itself."""

    def __init__(self, name: str, memory: Array, layout: Layout, address: int, number: int) -> None:
        self.name, self.memory, self.layout, self.address, self.number = name, memory, layout, address, number
        self.before: Array | None = None
        self.is_argument = True

    def keep(self) -> None:
        """Keep what is there now; of no elements the one that a layout has at the least."""
        kept = self.memory.copy() if self.memory.size else np.zeros(1, self.memory.dtype)
        self.before = kept.reshape(self.layout.shape)

    def release(self) -> None:
        """Let go of the memory, which is the host's: its size and dtype stay."""
        self.memory = np.broadcast_to(np.zeros((), self.memory.dtype), self.memory.shape)

    def __repr__(self) -> str:
        return f"<Storage {self.name} {self.layout!r}>"


class Storages:
    """The storages of a launch, in the order in which they are met; ``known`` are tensors by their address, which
    kernels may load and go to; what is there when they are met is kept, up to
    ``snapshot_bytes`` together."""

    def __init__(self, known: dict[int, TensorArgument], *, snapshot_bytes: int = 0) -> None:
        self._room = snapshot_bytes
        self.all: list[Storage] = []
        self._found: dict[tuple[int, str], Storage] = {}
        self._known = dict(known)

    def of_tensor(self, name: str, tensor: TensorArgument) -> Storage:
        """The storage that a tensor lies in."""
        return self._of(name, tensor.address, tensor.memory, _dense_shape(tensor))

    def of_array(self, name: str, array: Array) -> tuple[Storage, int]:
        """The storage of a numpy array (all of the array that it is a view of), and the element where it begins."""
        whole = array
        while isinstance(whole.base, np.ndarray) and whole.base.dtype == array.dtype:
            whole = whole.base
        if not whole.flags.c_contiguous:
            raise ValueError(f"argument {name}: an array whose memory is not row-major")
        start, begin = (a.__array_interface__["data"][0] for a in (whole, array))
        return self._of(name, start, whole.reshape(-1), whole.shape), (begin - start) // array.itemsize

    def viewed(self, storage: Storage, dtype: np.dtype[Any]) -> Storage:
        """The same memory as another dtype."""
        if dtype == storage.memory.dtype:
            return storage
        usable = storage.memory.nbytes // dtype.itemsize * dtype.itemsize
        memory = storage.memory.view(np.uint8)[:usable].view(dtype)
        name = f"{storage.name}_{dtypes.of_numpy(dtype).short}"
        made = self._of(name, storage.address, memory, (memory.size,))
        made.is_argument = made.is_argument and made.name != name
        return made

    def at_address(self, address: int) -> Storage | None:
        """The storage that an address lies in."""
        for storage in self.all:
            if storage.address <= address < storage.address + max(storage.memory.nbytes, 1):
                return storage
        for known, tensor in self._known.items():
            begin = tensor.address
            if begin <= address < begin + max(tensor.memory.nbytes, 1):
                made = self._of(f"at_{known:x}", begin, tensor.memory, _dense_shape(tensor))
                made.is_argument = False
                return made
        return None

    def _of(self, name: str, address: int, memory: Array, shape: tuple[int, ...]) -> Storage:
        key = (address, dtypes.of_numpy(memory.dtype).name)
        found = self._found.get(key)
        if found is None or len(found.memory) < len(memory):
            names = {storage.name for storage in self.all}
            unique, number = name, 2
            while unique in names:
                unique, number = f"{name}_{number}", number + 1
            layout = Layout.dense(shape if memory.size else (1,), dtypes.of_numpy(memory.dtype))
            found = self._found[key] = Storage(unique, memory, layout, address, len(self.all))
            self.all.append(found)
            if memory.nbytes <= self._room:
                self._room -= memory.nbytes
                found.keep()
        return found


def _dense_shape(tensor: TensorArgument) -> tuple[int, ...]:
    """The dense shape of the whole memory, where the tensor is all of it in some order of its dimensions."""
    dims = sorted(((s, n) for n, s in zip(tensor.shape, tensor.strides, strict=True) if n > 1), reverse=True)
    step = 1
    shape: list[int] = []
    for stride, size in reversed(dims):
        if stride != step:
            return (tensor.memory.size,)
        shape.insert(0, size)
        step *= size
    return tuple(shape) if shape and step == tensor.memory.size else (tensor.memory.size,)
