"""torch's ``cuda`` while a session lasts: the CPU, which answers as a GPU would.

A script's tensors lie on the CPU, and those that it made on ``cuda`` say so: ``x.device`` and ``x.is_cuda`` answer what
they would on a GPU. Tensors that it made on the CPU by name, or without a device, are told apart by a mark that follows
what is computed from them, so that ``x.cuda()`` and ``x.cpu()`` copy where a GPU would have a second memory. torch is
never imported here: what a script imports is changed as it is loaded, and put back when the session ends.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.abc
import importlib.util
import inspect
import math
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

from ....ir.errors import TritonNameError
from .driver import CAPABILITY
from .session_state import SessionState

__all__ = ["torch_on_cpu"]

_MARK = "_kernscope_on_cpu"
_ALLOCATED = 1 << 34
#: Functions of torch whose gradients are sums over many rows.
_SUMMED_IN_SINGLE = ("layer_norm", "group_norm", "rms_norm", "batch_norm", "instance_norm")


@contextlib.contextmanager
def torch_on_cpu(session: SessionState) -> Iterator[None]:
    """``cuda`` means the CPU in the block, whether torch is loaded already or is loaded within."""
    with contextlib.ExitStack() as undo:
        torch = sys.modules.get("torch")
        if torch is not None:
            _change(torch, session, undo)
        else:
            finder = _Loaded(lambda module: _change(module, session, undo))
            sys.meta_path.insert(0, finder)
            undo.callback(_forget, finder)
        yield


def _forget(finder: Any) -> None:
    with contextlib.suppress(ValueError):
        sys.meta_path.remove(finder)


class _Loaded(importlib.abc.MetaPathFinder):
    """Finds torch as the others do, and tells once it is loaded."""

    def __init__(self, then: Callable[[ModuleType], None]) -> None:
        self._then = then

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """The specification of torch, whose loader tells."""
        if name != "torch":
            return None
        _forget(self)
        specification = importlib.util.find_spec(name)
        if specification is None or specification.loader is None:
            return None
        loader: Any = specification.loader
        load = loader.exec_module

        def loaded(module: ModuleType) -> None:
            load(module)
            self._then(module)

        loader.exec_module = loaded
        return specification


def _change(torch: Any, session: SessionState, undo: contextlib.ExitStack) -> None:
    def put(owner: Any, name: str, value: Any) -> None:
        missing = object()
        before = getattr(owner, name, missing)
        undo.callback(delattr, owner, name) if before is missing else undo.callback(setattr, owner, name, before)
        setattr(owner, name, value)

    mode = _mode(torch, session)
    for name, answer in _cuda_answers(torch, session).items():
        put(torch.cuda, name, answer)
    put(torch.version, "cuda", "12.8")
    put(torch, "compile", _eager)
    put(torch, "Generator", _generator(torch))
    put(torch, "set_default_device", mode.set_default)
    put(torch, "get_default_device", mode.get_default)
    put(torch.library.Library, "impl", _on_cpu_key(torch, mode))
    backward = torch.autograd.function.BackwardCFunction
    put(backward, "apply", _in_force(torch, mode, backward.apply))
    undo.callback(setattr, mode, "is_running", False)
    mode.__enter__()
    undo.callback(mode.__exit__, None, None, None)


def _in_force(torch: Any, mode: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that a script wrote and torch calls from inside one of its own, where no mode is in force: a step of a
    backward pass, an operator of a library. After the session it is as it was."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if not mode.is_running or mode in torch.overrides._get_current_function_mode_stack():
            return function(*args, **kwargs)
        with mode:
            return function(*args, **kwargs)

    return called


def _eager(model: Any = None, **_: Any) -> Any:
    """``torch.compile``: the model as it is. The numbers are the same, and nothing is timed."""
    return (lambda given: given) if model is None else model


def _on_cpu_key(torch: Any, mode: Any) -> Callable[..., Any]:
    """``torch.library.Library.impl``: what is registered for ``cuda`` runs where its tensors are."""
    implement = torch.library.Library.impl
    keys = {"CUDA": "CPU", "AutogradCUDA": "AutogradCPU"}

    def impl(self: Any, op_name: Any, fn: Any, dispatch_key: str = "", *args: Any, **kwargs: Any) -> Any:
        # torch's own modules register their operators for both.
        if str(sys._getframe(1).f_globals.get("__name__")).split(".")[0] == "torch":
            return implement(self, op_name, fn, dispatch_key, *args, **kwargs)
        made = _in_force(torch, mode, fn) if inspect.isfunction(fn) else fn
        return implement(self, op_name, made, keys.get(dispatch_key, dispatch_key), *args, **kwargs)

    return impl


def _generator(torch: Any) -> Any:
    class Generator(torch.Generator):  # type: ignore[misc]  # of a module that is known when it runs
        def __new__(cls, device: Any = "cpu") -> Any:
            return super().__new__(cls, device="cpu")

    return Generator


# --- tensors ----------------------------------------------------------------------------------------------------------


def _mode(torch: Any, session: SessionState) -> Any:
    """The mode that all functions of torch go through in the session."""
    tensor = torch.Tensor
    gpu, cpu = torch.device("cuda", 0), torch.device("cpu")

    def is_gpu(value: Any) -> bool:
        return value.__class__ is torch.device and value.type == "cuda"

    def names_gpu(value: Any) -> bool:
        return is_gpu(value) or (value.__class__ is str and value.startswith("cuda"))

    def mapped(value: Any) -> Any:
        return cpu if names_gpu(value) else value

    def is_on_cpu(value: Any) -> bool:
        return not session.is_gpu_active or getattr(value, _MARK, False)

    def mark(result: Any, on_cpu: bool) -> Any:
        if isinstance(result, tensor):
            if on_cpu or hasattr(result, _MARK):
                setattr(result, _MARK, on_cpu)
        elif isinstance(result, tuple | list):
            for item in result:
                mark(item, on_cpu)
        return result

    def moved(value: Any, device: Any, result: Any) -> Any:
        """What became of a tensor that was sent to a device: a copy where a GPU would have made one."""
        to_gpu = names_gpu(device) or (device.__class__ is int and session.is_gpu_active)
        if session.is_gpu_active and to_gpu == is_on_cpu(value) and result is value:
            result = value.clone()
        return mark(result, not to_gpu)

    def send(value: Any, *args: Any, **kwargs: Any) -> Any:
        """``Tensor.to``."""
        device = kwargs.get("device", next((a for a in args[:1] if _is_device(torch, a)), None))
        if isinstance(device, tensor) or (args and isinstance(args[0], tensor)):
            other: Any = args[0] if args else device
            kwargs = {"dtype": other.dtype, **kwargs}
            return moved(value, cpu if is_on_cpu(other) else gpu, value.to(cpu, *args[1:], **kwargs))
        if device is None:
            return mark(value.to(*args, **kwargs), getattr(value, _MARK, False))
        given = [cpu if n == 0 and _is_device(torch, a) else a for n, a in enumerate(args)]
        if "device" in kwargs:
            kwargs["device"] = cpu
        return moved(value, device, value.to(*given, **kwargs))

    def address(value: Any) -> int:
        number = int(value.data_ptr())
        session.addresses[number] = weakref.ref(value)
        return number

    def set_data(value: Any, data: Any) -> None:
        tensor.data.__set__(value, data)
        mark(value, getattr(data, _MARK, False))

    answers: Mapping[Any, Callable[..., Any]] = {
        torch.device: torch.device,
        tensor.device.__get__: lambda value: cpu if is_on_cpu(value) else gpu,
        tensor.is_cuda.__get__: lambda value: not is_on_cpu(value),
        tensor.is_cpu.__get__: is_on_cpu,
        tensor.data.__set__: set_data,
        tensor.get_device: lambda value: -1 if is_on_cpu(value) else 0,
        tensor.cuda: lambda value, *args, **kwargs: moved(value, gpu, value),
        tensor.cpu: lambda value, *args, **kwargs: moved(value, cpu, value),
        tensor.to: send,
        tensor.data_ptr: address,
        tensor.pin_memory: lambda value, *args, **kwargs: value,
        tensor.is_pinned: lambda value, *args, **kwargs: False,
        tensor.record_stream: lambda value, stream: None,
    }

    functional = torch.nn.functional
    normalizing = {getattr(functional, name) for name in _SUMMED_IN_SINGLE if hasattr(functional, name)}
    narrow = (torch.float16, torch.bfloat16)

    def in_single(value: Any) -> Any:
        return value.float() if isinstance(value, tensor) and value.dtype in narrow else value

    def summed_in_single(function: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """As a GPU does it: half precision is summed up in single precision. torch's own CPU kernels sum their
        gradients in half."""
        wide = {name: in_single(value) for name, value in kwargs.items()}
        result = function(*map(in_single, args), **wide)
        return mark(result.to(args[0].dtype), is_on_cpu(args[0]))

    class OnCpu(torch.overrides.TorchFunctionMode):  # type: ignore[misc]  # of a module that is known when it runs
        default = cpu
        is_running = True

        def set_default(self, device: Any) -> None:
            OnCpu.default = gpu if names_gpu(device) else cpu

        def get_default(self) -> Any:
            return OnCpu.default

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = dict(kwargs or {})
            answer = answers.get(function) if function.__hash__ is not None else None
            if answer is not None:
                return answer(*args, **kwargs)
            if function in normalizing and isinstance(args[0], tensor) and args[0].dtype in narrow:
                return summed_in_single(function, args, kwargs)
            device = kwargs.get("device")
            if device is None:
                device = next((a for a in args if is_gpu(a)), None)
            if names_gpu(device) or device.__class__ is int:
                kwargs = {name: mapped(value) for name, value in kwargs.items()}
                if device.__class__ is int:
                    kwargs["device"] = cpu
                args = tuple(mapped(a) for a in args)
            if kwargs.get("pin_memory"):
                kwargs["pin_memory"] = False
            result = function(*args, **kwargs)
            if device is not None:
                return mark(result, not names_gpu(device) and device.__class__ is not int)
            given = list(_tensors(tensor, args, kwargs))
            if given:
                return mark(result, all(getattr(value, _MARK, False) for value in given))
            return mark(result, OnCpu.default is cpu)

    return OnCpu()


def _is_device(torch: Any, value: Any) -> bool:
    return value.__class__ in (torch.device, str, int)


def _tensors(kind: Any, args: Any, kwargs: Mapping[str, Any]) -> Iterator[Any]:
    for value in (*args, *kwargs.values()):
        if isinstance(value, kind):
            yield value
        elif isinstance(value, tuple | list):
            yield from (item for item in value if isinstance(item, kind))


# --- torch.cuda -------------------------------------------------------------------------------------------------------


class _Stream:
    """``torch.cuda.Stream``: work is done when it is asked for."""

    cuda_stream = 0
    device_index = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.priority = 0

    def synchronize(self) -> None:
        """All is done."""

    def wait_stream(self, stream: Any) -> None:
        """It is done."""

    def wait_event(self, event: Any) -> None:
        """It is over."""

    def record_event(self, event: Any = None) -> Any:
        """Note an event."""
        event.record()
        return event

    def query(self) -> bool:
        """All is done."""
        return True

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


class _Nothing:
    """A context that changes nothing: ``torch.cuda.device``, ``torch.cuda.stream``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.idx = 0

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        return function


class _GpuGenerator:
    """``torch.cuda.default_generators[0]``: a seed and an offset, which libraries read and move on for kernels of
    their own. What torch itself draws comes from the CPU's generator."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._words = [int(torch.default_generator.initial_seed()), 0]

    def get_state(self) -> Any:
        """16 bytes: the seed, then the offset."""
        torch = self._torch
        signed = [word - (1 << 64) if word >= 1 << 63 else word for word in self._words]
        return torch.tensor(signed, dtype=torch.int64, device="cpu").view(torch.uint8)

    def set_state(self, state: Any) -> None:
        """Take such bytes over."""
        self._words = [int(word) for word in state.view(self._torch.int64)]

    def manual_seed(self, seed: int) -> _GpuGenerator:
        """Begin anew."""
        self._words = [int(seed), 0]
        return self

    def initial_seed(self) -> int:
        """The seed."""
        return self._words[0]


def _refused(name: str) -> type:
    """A class that cannot be made: it stands in annotations, too."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise TritonNameError(
            f"torch.cuda.{name} is refused by kernscope: launches are run when they are made, and not again",
            help="call the function itself",
        )

    return type(name, (), {"__init__": refuse})


def _answering(value: Any) -> Callable[..., Any]:
    """A function that answers so: one for each name, as torch tells its functions apart by what they are."""
    return lambda *args, **kwargs: value


def _cuda_answers(torch: Any, session: SessionState) -> dict[str, Any]:
    device = session.device
    properties = SimpleNamespace(
        name=device.name,
        major=CAPABILITY[0],
        minor=CAPABILITY[1],
        total_memory=_ALLOCATED,
        multi_processor_count=device.processing_elements,
        warp_size=32,
        regs_per_multiprocessor=65_536,
        shared_memory_per_block=device.scratch_bytes,
        shared_memory_per_block_optin=device.scratch_bytes,
        shared_memory_per_multiprocessor=device.scratch_bytes,
        max_threads_per_multi_processor=2048,
        L2_cache_size=0,
        gcnArchName="",
    )
    stream = _Stream()

    class Event:
        """``torch.cuda.Event``: the time between two is that of the launches between them, NaN without one."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.launches = len(session.launches)

        def record(self, stream: Any = None) -> None:
            self.launches = len(session.launches)

        def elapsed_time(self, end: Any) -> float:
            between = session.launches[self.launches : end.launches]
            return math.fsum(map(session.milliseconds, between)) if between else math.nan

        def synchronize(self) -> None:
            pass

        def wait(self, stream: Any = None) -> None:
            pass

        def query(self) -> bool:
            return True

    generator = _GpuGenerator(torch)

    def seed(number: int) -> None:  # torch.manual_seed asks for it too
        generator.manual_seed(int(number))
        torch.default_generator.manual_seed(number)

    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": _answering(None),
        "is_bf16_supported": lambda *args, **kwargs: True,
        "device_count": lambda: 1,
        "current_device": _answering(0),
        "set_device": _answering(None),
        "get_device_name": lambda device=None: properties.name,
        "get_device_capability": lambda device=None: CAPABILITY,
        "get_device_properties": lambda device=None: properties,
        "get_arch_list": lambda: [f"sm_{CAPABILITY[0]}{CAPABILITY[1]}"],
        "synchronize": _answering(None),
        "ipc_collect": _answering(None),
        "empty_cache": _answering(None),
        "mem_get_info": lambda device=None: (_ALLOCATED, _ALLOCATED),
        "default_generators": (generator,),
        "manual_seed": lambda number: seed(number),
        "manual_seed_all": lambda number: seed(number),
        "seed": _answering(None),
        "seed_all": _answering(None),
        "initial_seed": lambda: torch.default_generator.initial_seed(),
        "get_rng_state": lambda device=None: torch.default_generator.get_state(),
        "set_rng_state": lambda state, device=None: torch.default_generator.set_state(state),
        "current_stream": lambda device=None: stream,
        "default_stream": lambda device=None: stream,
        "set_stream": _answering(None),
        "stream": type("stream", (_Nothing,), {}),
        "device": type("device", (_Nothing,), {}),
        "device_of": type("device_of", (_Nothing,), {}),
        "Stream": type("Stream", (_Stream,), {}),
        "ExternalStream": type("ExternalStream", (_Stream,), {}),
        "Event": Event,
        "CUDAGraph": _refused("CUDAGraph"),
        "graph": _refused("graph"),
        "_lazy_init": _answering(None),
    }
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
        answers[name] = _answering(0)
    for name in ("reset_peak_memory_stats", "reset_max_memory_allocated", "reset_accumulated_memory_stats"):
        answers[name] = _answering(None)
    return answers
