"""``triton.knobs``: settings of Triton's compiler and its run time. They can be read, written, scoped and reset as
scripts and test suites do; there is no compiler that would obey them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs

from ....ir.errors import TritonNameError, did_you_mean

__all__ = ["KnobGroup", "knobs"]


@attrs.frozen
class _Knob:
    """A setting: the environment's variable that it is read from where nobody has set it, and its default."""

    key: str
    default: Any = False

    def read(self) -> Any:
        """What the environment says, as the default's type."""
        given = os.environ.get(self.key)
        if given is None:
            return self.default
        if isinstance(self.default, bool):
            return given.lower() in ("1", "true", "on", "yes", "y")
        return int(given) if isinstance(self.default, int) else given


class _Hooks:
    """A chain of functions around what a GPU's driver does: kernels are loaded and launched by none here."""

    def __init__(self, name: str) -> None:
        self._name = name

    def add(self, function: Any) -> None:
        """Refused: it would never be called."""
        raise TritonNameError(
            f"triton.knobs.runtime.{self._name}.add is refused by kernscope: no driver would call what is added",
            help="session.launches has the launches, with their grids and times",
        )

    def remove(self, function: Any) -> None:
        """It is not there."""


class KnobGroup:
    """``triton.knobs.compilation`` and the like, ``base_knobs`` in Triton."""

    _known: Mapping[str, Any]
    _set: dict[str, Any]

    def __init__(self, name: str, known: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_known", known)
        object.__setattr__(self, "_set", {})

    @property
    def knob_descriptors(self) -> dict[str, _Knob]:
        """The settings that the environment is asked for, by name."""
        return {name: knob for name, knob in self._known.items() if isinstance(knob, _Knob)}

    @property
    def knobs(self) -> dict[str, Any]:
        """Their values by name."""
        return {name: getattr(self, name) for name in self.knob_descriptors}

    def copy(self) -> KnobGroup:
        """The same settings, to be changed apart."""
        made = KnobGroup(self._name, self._known)
        made._set.update(self._set)
        return made

    def reset(self) -> KnobGroup:
        """Itself, with nothing set."""
        self._set.clear()
        return self

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is set inside is forgotten, in the environment too."""
        environment = {knob.key: os.environ.get(knob.key) for knob in self.knob_descriptors.values()}
        before = dict(self._set)
        try:
            yield
        finally:
            self._set.clear()
            self._set.update(before)
            for key, value in environment.items():
                if value is None:
                    os.environ.pop(key, None)
                else:
                    os.environ[key] = value

    def _unknown(self, name: str) -> TritonNameError:
        return TritonNameError(
            f"triton.knobs.{self._name}.{name} is not known to kernscope",
            help=did_you_mean(name, list(self._known), listed=f"it has: {', '.join(self._known)}"),
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._set:
            return self._set[name]
        if name not in self._known:
            raise self._unknown(name)
        known = self._known[name]
        return known.read() if isinstance(known, _Knob) else known

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._known:
            raise self._unknown(name)
        self._set[name] = value

    def __delattr__(self, name: str) -> None:
        self._set.pop(name, None)


_HOOKS = (
    *("launch_enter_hook", "launch_exit_hook", "kernel_load_start_hook", "kernel_load_end_hook"),
    "kernel_unload_hook",
)
#: The settings by group; names and variables are Triton's (``python/triton/knobs.py``).
_SETTINGS: dict[str, dict[str, Any]] = {
    "build": {
        "cc": _Knob("CC", None),
        "cudacrt_path": _Knob("TRITON_CUDACRT_PATH", None),
        "cudart_path": _Knob("TRITON_CUDART_PATH", None),
        "impl": None,
    },
    "redis": {
        "key_format": _Knob("TRITON_REDIS_KEY_FORMAT", "triton:{key}:{filename}"),
        "host": _Knob("TRITON_REDIS_HOST", "localhost"),
        "port": _Knob("TRITON_REDIS_PORT", 6379),
    },
    "cache": {
        "home_dir": _Knob("TRITON_HOME", os.path.expanduser("~/")),
        "dump_dir": _Knob("TRITON_DUMP_DIR", None),
        "override_dir": _Knob("TRITON_OVERRIDE_DIR", None),
        "dir": _Knob("TRITON_CACHE_DIR", None),
    },
    "compilation": {
        "override": _Knob("TRITON_KERNEL_OVERRIDE"),
        "dump_ir": _Knob("TRITON_KERNEL_DUMP"),
        "store_binary_only": _Knob("TRITON_STORE_BINARY_ONLY"),
        "always_compile": _Knob("TRITON_ALWAYS_COMPILE"),
        "use_ir_loc": _Knob("USE_IR_LOC", None),
        "enable_asan": _Knob("TRITON_ENABLE_ASAN"),
        "disable_line_info": _Knob("TRITON_DISABLE_LINE_INFO"),
        "front_end_debugging": _Knob("TRITON_FRONT_END_DEBUGGING"),
        "allow_non_constexpr_globals": _Knob("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS"),
        "instrumentation_mode": "",
        "listener": None,
    },
    "autotuning": {
        "cache": _Knob("TRITON_CACHE_AUTOTUNING"),
        "print": _Knob("TRITON_PRINT_AUTOTUNING"),
        "listener": None,
    },
    "runtime": {
        "interpret": _Knob("TRITON_INTERPRET"),
        "debug": _Knob("TRITON_DEBUG"),
        "override_arch": _Knob("TRITON_OVERRIDE_ARCH", None),
        **{name: _Hooks(name) for name in _HOOKS},
        "jit_cache_hook": None,
        "jit_post_compile_hook": None,
        "add_stages_inspection_hook": None,
    },
    "language": {
        "fp32_default": _Knob("TRITON_F32_DEFAULT", None),
        "default_fp_fusion": _Knob("TRITON_DEFAULT_FP_FUSION", True),
    },
    "nvidia": {
        "dump_nvptx": _Knob("NVPTX_ENABLE_DUMP"),
        "disable_ptxas_opt": _Knob("DISABLE_PTXAS_OPT"),
        "ptxas_options": _Knob("PTXAS_OPTIONS", None),
        "mock_ptx_version": _Knob("TRITON_MOCK_PTX_VERSION", None),
        "dump_ptxas_log": _Knob("TRITON_DUMP_PTXAS_LOG"),
        "libdevice_path": _Knob("TRITON_LIBDEVICE_PATH", None),
        "libcuda_path": _Knob("TRITON_LIBCUDA_PATH", None),
    },
    "amd": {
        "use_buffer_ops": _Knob("AMDGCN_USE_BUFFER_OPS", True),
        "use_buffer_atomics": _Knob("AMDGCN_USE_BUFFER_ATOMICS", True),
        "dump_amdgcn": _Knob("AMDGCN_ENABLE_DUMP"),
        "libhip_path": _Knob("TRITON_LIBHIP_PATH", None),
        "use_block_pingpong": _Knob("TRITON_HIP_USE_BLOCK_PINGPONG", None),
        "use_in_thread_transpose": _Knob("TRITON_HIP_USE_IN_THREAD_TRANSPOSE", None),
        "use_async_copy": _Knob("TRITON_HIP_USE_ASYNC_COPY", None),
        "scalarize_packed_fops": _Knob("AMDGCN_SCALARIZE_PACKED_FOPS"),
    },
    "proton": {
        "disable": _Knob("TRITON_PROTON_DISABLE"),
        "profile_buffer_size": _Knob("TRITON_PROFILE_BUFFER_SIZE", 64 * 1024 * 1024),
        "enable_nvtx": _Knob("TRITON_ENABLE_NVTX", True),
    },
}


def knobs() -> dict[str, Any]:
    """The module's names, made anew for a session."""
    return {
        **{name: KnobGroup(name, known) for name, known in _SETTINGS.items()},
        "base_knobs": KnobGroup,
        "propagate_env": True,
    }
