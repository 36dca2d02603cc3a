"""``triton.runtime.driver``: what scripts ask of a GPU is answered with the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import attrs

from ....ir.errors import TritonNameError
from .session_state import SessionState, current_session
from .testing import do_bench

__all__ = ["ARCHITECTURE", "CAPABILITY", "Driver", "GPUTarget", "device_properties"]

#: The GPU that kernels believe to run on: they take their path for it. The numbers are the machine's.
CAPABILITY = (8, 0)
ARCHITECTURE = 80


@attrs.frozen
class GPUTarget:
    """``triton.backends.compiler.GPUTarget``."""

    backend: str
    arch: Any
    warp_size: int


def device_properties(session: SessionState) -> dict[str, int]:
    """The machine's numbers under Triton's names. Registers, warps and threads are those of a GPU: it has none."""
    device = session.device
    return {
        "max_shared_mem": device.scratch_bytes,
        "multiprocessor_count": device.processing_elements,
        "max_num_regs": 65_536,
        "warpSize": 32,
        "max_threads_per_sm": 2048,
        "sm_clock_rate": device.clock_khz,
        "mem_clock_rate": device.clock_khz,
        "mem_bus_width": 1024,
    }


class _Utils:
    """``driver.active.utils``."""

    def get_device_properties(self, device: Any = 0) -> dict[str, int]:
        """As :func:`device_properties`."""
        return device_properties(current_session())

    def __getattr__(self, name: str) -> Any:
        raise _missing(f"driver.active.utils.{name}")


class _Active:
    """``driver.active``: the machine in the place of a GPU."""

    def __init__(self) -> None:
        self.utils = _Utils()

    def get_current_target(self) -> GPUTarget:
        """The GPU that stands for it."""
        if not current_session().is_gpu_active:
            return GPUTarget("cpu", 0, 0)
        return GPUTarget("cuda", ARCHITECTURE, 32)

    def get_active_torch_device(self) -> Any:
        """torch's device, or its name where torch is not loaded."""
        on_gpu = current_session().is_gpu_active
        torch: Any = sys.modules.get("torch")
        if torch is None:
            return "cuda" if on_gpu else "cpu"
        return torch.device("cuda", 0) if on_gpu else torch.device("cpu")

    def get_current_device(self) -> int:
        """Its number."""
        return 0

    def set_current_device(self, device: Any) -> None:
        """There is one."""

    def get_current_stream(self, device: Any = 0) -> int:
        """The one stream."""
        return 0

    def get_benchmarker(self) -> Callable[..., Any]:
        """``triton.testing.do_bench``."""
        return do_bench

    def get_device_interface(self) -> Any:
        """``torch.cuda``."""
        torch: Any = sys.modules.get("torch")
        if torch is None:
            raise TritonNameError("driver.active.get_device_interface without torch", help="import torch first")
        return torch.cuda

    def get_empty_cache_for_benchmark(self) -> Any:
        """No cache is modelled: an array of one element to clear."""
        torch: Any = sys.modules.get("torch")
        return bytearray(1) if torch is None else torch.empty(1)

    def clear_cache(self, cache: Any) -> None:
        """No cache is modelled."""

    def is_active(self) -> bool:
        """It is."""
        return True

    def __getattr__(self, name: str) -> Any:
        raise _missing(f"driver.active.{name}")


class Driver:
    """``triton.runtime.driver``."""

    def __init__(self) -> None:
        self.active = self.default = _Active()

    def set_active_to_cpu(self) -> None:
        """From now on the script's tensors are on the CPU, also to themselves."""
        current_session().is_gpu_active = False

    def set_active_to_gpu(self) -> str:
        """From now on what the script calls ``cuda`` is there."""
        current_session().is_gpu_active = True
        return "nvidia"

    def get_active_gpus(self) -> list[str]:
        """The one that the machine stands for."""
        return ["nvidia"]

    def set_active(self, driver: Any) -> None:
        """There is one."""

    def reset_active(self) -> None:
        """There is one."""

    def __getattr__(self, name: str) -> Any:
        raise _missing(f"driver.{name}")


def _missing(name: str) -> TritonNameError:
    return TritonNameError(
        f"triton.runtime.{name} is not answered by kernscope",
        help="no GPU is there: only what can be said of a machine is answered, see docs/triton.md",
    )
