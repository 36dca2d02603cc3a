"""Every public result can be pickled and copied: it goes through multiprocessing, a cache, a notebook's checkpoint."""

from __future__ import annotations

import copy
import importlib
import io
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.kernels.flash_attention import flash_attention


def plain(x: Any, o: Any, *, tile: int = 8) -> None:
    """A kernel with a finding that has a fix."""
    acc = tl.zeros((tile,), "f32")
    for j in range(2):
        with tl.scratch_scope():
            acc += tl.load(x[j * tile : (j + 1) * tile])
    tl.store(o[:], acc)


wrapped = ks.kernel(plain)
GRAPH = ks.trace(plain, ks.hbm((16,), "f32"), ks.hbm((8,), "f32"))
SCHEDULE = ks.schedule(GRAPH)
REPORT = ks.lint(GRAPH)
LAUNCH = flash_attention.launch()

RESULTS: dict[str, Any] = {
    "graph": GRAPH,
    "node": GRAPH[1],
    "edge": GRAPH[3].edges_in,
    "storage": GRAPH.storage(0),
    "target": GRAPH.target,
    "machine": ks.load_machine(),
    "schedule": SCHEDULE,
    "chain": SCHEDULE.critical_chain(),
    "price": SCHEDULE.price_of_reuse(),
    "utilisation": SCHEDULE.utilisation(),
    "moved": SCHEDULE.moved_against(ks.schedule(GRAPH, "lazy")),
    "ladder": ks.compare(GRAPH),
    "liveness": ks.liveness(GRAPH),
    "placement": ks.liveness(GRAPH).placement(),
    "violations": ks.liveness(GRAPH).violations,
    "report": REPORT,
    "diagnostic": REPORT.of("KS201")[0],
    "fix": REPORT.of("KS201")[0].fixes,
    "fit": ks.fit(plain, "tile", [4, 8], x=ks.hbm((16,), "f32"), o=ks.hbm((8,), "f32")),
    "outputs": ks.run(GRAPH, {"x": np.ones(16, np.float32)}),
    "drawing": ks.draw(GRAPH),
    "timeline": ks.timeline(SCHEDULE),
    "kernel": wrapped,
    "decorated": flash_attention,
    "launch": LAUNCH,
    "hbm": ks.hbm((4, 4), "f16"),
    "dag": ks.schedule_dag([1, 2], [0, 0], [1], [(0, 1)]),
}

WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {protocol}": partial(lambda protocol, value: pickle.loads(pickle.dumps(value, protocol)), protocol)
        for protocol in (2, pickle.HIGHEST_PROTOCOL)
    },
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_travels(name: str, way: str) -> None:
    """And says the same when it arrives."""
    value = RESULTS[name]
    back = WAYS[way](value)
    assert type(back) is type(value)
    if not (isinstance(value, ks.Node) or "0x" in repr(value)):
        assert repr(back) == repr(value)
    if name in ("graph", "report", "machine", "target", "fit"):
        assert back == value
    if name == "schedule":
        assert back.to_json() == value.to_json() and ks.check(back) == []


def test_kernels_stay_usable() -> None:
    """A decorated kernel is found by its name, as a function is; others bring their launches along."""
    assert pickle.loads(pickle.dumps(flash_attention)) is flash_attention
    assert copy.deepcopy(LAUNCH).kernel is flash_attention
    launched = ks.launch("small", x=ks.hbm((16,), "f32"), o=ks.hbm((8,), "f32"))(ks.Kernel(plain))
    back = pickle.loads(pickle.dumps(launched.launch()))
    assert back.kernel.launches["small"] is back
    assert ks.trace(back) == ks.trace(launched.launch())


@pytest.mark.parametrize("name", sorted(ks.ir.errors.__all__ if hasattr(ks, "ir") else ks.errors.__all__))
def test_errors_travel(name: str) -> None:
    """From a worker's process, with message, help and places."""
    kind = getattr(ks, name, None)
    if not (isinstance(kind, type) and issubclass(kind, ks.KernscopeError)):
        return
    error = kind("message", help="help").at(GRAPH[1].location)
    for back in (pickle.loads(pickle.dumps(error)), copy.copy(error), pickle.loads(_dumps_of_dask(error))):
        assert (type(back), str(back), back.places) == (kind, str(error), error.places)


def _dumps_of_dask(error: ks.KernscopeError) -> bytes:
    """As a process pickles that has imported Dask; as usual where it is not installed."""
    written = io.BytesIO()
    pickler = pickle.Pickler(written)
    try:
        support = importlib.import_module("tblib.pickling_support")
    except ModuleNotFoundError:
        return pickle.dumps(error)
    pickler.dispatch_table = {type(error): support.pickle_exception}
    pickler.dump(error)
    return written.getvalue()
