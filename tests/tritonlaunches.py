"""A session whose launches are only noted: what kernels are launched with, without running them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kernscope.tracer.triton.host.modules import standing_in
from kernscope.tracer.triton.host.session_state import Device, LaunchRequest, SessionState, running_session

DEVICE = Device("ahbm-pe", processing_elements=4, scratch_bytes=1 << 20, clock_khz=1_000_000)


@contextmanager
def noted(**options: Any) -> Iterator[SessionState]:
    """Inside, ``import triton`` finds the stand-ins, and ``state.launches`` are the requests. ``run`` is called with
    each of them, ``fits`` says whether one fits (all do), ``milliseconds`` how long it takes (2.0)."""
    run = options.pop("run", lambda request: None)

    def launch(request: LaunchRequest) -> LaunchRequest:
        run(request)
        return request

    options = {"milliseconds": lambda launch: 2.0, "fits": lambda launch: True, **options}
    state = SessionState(DEVICE, launch, **options)
    with running_session(state), standing_in():
        yield state
