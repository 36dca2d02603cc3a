"""A plugin of pytest's, for ``interpreter_numbers.py``: the tensors of the last launch of each kernel of a test, as
they are when the test ends, in a file of numpy's in the folder that ``--numbers`` names. It runs with kernscope's
stand-ins, or with Triton's own interpreter."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

#: More elements of a tensor are not all kept.
_MOST = 1 << 20
#: Of the running test: kernel -> argument -> tensor.
_LAST: dict[str, dict[str, Any]] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("numbers")
    group.addoption("--numbers", type=Path, help="the folder for the numbers of launches")
    group.addoption("--interpreted", action="store_true", help="launches are those of Triton's interpreter")


def pytest_configure(config: pytest.Config) -> None:
    """From now on launches are noted, and what is made without a value is 0: it is the same on both sides."""
    if config.getoption("--numbers") is None:
        return
    torch.empty, torch.empty_like = torch.zeros, torch.zeros_like
    if config.getoption("--interpreted"):
        executor = importlib.import_module("triton.runtime.interpreter").GridExecutor
        launch = executor.__call__

        def interpreted(self: Any, *args: Any, **kwargs: Any) -> Any:
            found = launch(self, *args, **kwargs)
            _note(self.fn.__name__, self.arg_names, args, kwargs)
            return found

        executor.__call__ = interpreted
        return
    kernel = importlib.import_module("kernscope.tracer.triton.host.jit").JITFunction
    run = kernel.run

    def noted(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        found = run(self, *args, grid=grid, warmup=warmup, **kwargs)
        if not warmup:
            _note(self.fn.__name__, self.arg_names, args, kwargs)
        return found

    kernel.run = noted


def _note(kernel: str, names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    _LAST[kernel] = {name: value for name, value in given.items() if isinstance(value, torch.Tensor)}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Write the numbers of a test that passes."""
    _LAST.clear()
    result = yield
    folder = item.config.getoption("--numbers")
    if folder is not None and _LAST:
        arrays = {f"{kernel} {name}": _numbers(t) for kernel, given in _LAST.items() for name, t in given.items()}
        name = hashlib.sha256(item.nodeid.rpartition("/")[2].encode()).hexdigest()[:24]
        np.savez(folder / f"{name}.npz", test=np.array(item.nodeid), **arrays)
    return result


def _numbers(tensor: Any) -> Any:
    with torch._C.DisableTorchFunction():
        tensor = tensor.detach()
        if tensor.is_floating_point() and tensor.dtype not in (torch.float16, torch.float32, torch.float64):
            tensor = tensor.float()
        flat = tensor.contiguous().reshape(-1).numpy()
    return flat[:: max(1, flat.size // _MOST)].copy()
