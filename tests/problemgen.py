"""Random problems on plain arrays: what the policies' properties are tested on, without any kernel."""

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from kernscope.ir.tables import Reason
from kernscope.machine.engines import EngineInstance
from kernscope.scheduler.policy.problem import Problem
from kernscope.scheduler.search.dag import Dag

ENGINES = ("dma_read", "gemm", "math", "link:next")


@st.composite
def problems(draw: st.DrawFn, max_ranks: int = 3, max_commands: int = 8, costs: bool = True) -> Problem:
    """A problem of up to three ranks: commands of one to three nodes, data and war edges within a rank, and messages
    with credits between ranks, which may well deadlock."""
    ranks = draw(st.integers(1, max_ranks))
    channels = [draw(st.sampled_from([1, 1, 2])), 1, 1, 1]
    engines = tuple(EngineInstance(r, name, c) for r in range(ranks) for name, c in zip(ENGINES, channels, strict=True))
    duration, engine, rank, command_of = [], [], [], []
    first, command_rank, cost, asynchronous = [], [], [], []
    sends: dict[int, list[int]] = {r: [] for r in range(ranks)}
    receives: dict[int, list[int]] = {r: [] for r in range(ranks)}
    for r in range(ranks):
        kinds = ["load", "compute", "compute", "composite", "marker"] + [
            "send",
            "recv",
            "send",
            "recv",
            "recv_async",
        ] * 2 * (ranks > 1)
        for kind in draw(st.lists(st.sampled_from(kinds), min_size=0, max_size=max_commands)):
            first.append(len(duration))
            command_rank.append(r)
            cost.append(draw(st.integers(0, 3)) if costs and kind != "marker" else 0)
            asynchronous.append(kind not in ("compute", "recv"))
            for _ in range(draw(st.integers(2, 3)) if kind == "composite" else 1):
                node = len(duration)
                on = {"load": 0, "send": 3, "recv": -1, "recv_async": -1, "marker": -1}.get(kind)
                local = draw(st.integers(0, 2)) if on is None else on
                if kind in ("send", "recv", "recv_async"):
                    (sends if kind == "send" else receives)[r].append(node)
                duration.append(0 if local < 0 else draw(st.integers(1 if kind == "send" else 0, 12)))
                engine.append(-1 if local < 0 else r * len(ENGINES) + local)
                rank.append(r)
                command_of.append(len(first) - 1)
    n = len(duration)
    markers = {f for f, c, a in zip(first, cost, asynchronous, strict=True) if a and engine[f] < 0 and c == 0}
    markers -= {node for each in receives.values() for node in each}
    edges: dict[tuple[int, int], int] = {}

    def add(source: int, target: int, reason: Reason) -> None:
        edges[source, target] = min(int(reason), edges.get((source, target), int(reason)))

    for target in range(n):
        same = [s for s in range(target) if rank[s] == rank[target] and s not in markers]
        if same and target not in markers:
            for source in draw(st.lists(st.sampled_from(same), max_size=3, unique=True)):
                add(source, target, draw(st.sampled_from([Reason.DATA, Reason.DATA, Reason.WAR, Reason.WAW])))
    slots = draw(st.sampled_from([1, 1, 2]))
    for r in range(ranks):
        s, d = sends[r], receives[(r + 1) % ranks]
        for queue in (s, d):
            for before, after in pairwise(queue):
                add(before, after, Reason.FIFO)
        for number, (send, receive) in enumerate(zip(s, d, strict=False)):
            add(send, receive, Reason.MESSAGE)
            if number + slots < len(s):
                add(receive, s[number + slots], Reason.CREDIT)
    rows = sorted((t, s, reason) for (s, t), reason in edges.items())
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3)
    release: list[int] = []
    for c, r in enumerate(command_rank):
        release.append(cost[c] + (release[-1] if c and command_rank[c - 1] == r else 0))
    command = np.array(command_of, dtype=np.int64)
    dag = Dag(
        duration_ps=np.array(duration, dtype=np.int64),
        engine=np.array(engine, dtype=np.int64),
        channels=np.array([e.channels for e in engines], dtype=np.int64),
        source=columns[:, 1].copy(),
        target=columns[:, 0].copy(),
        release_ps=np.array(release, dtype=np.int64)[command],
    )
    held = [draw(st.integers(0, length)) if draw(st.booleans()) else length for length in duration]
    return Problem(
        occupancy_ps=np.array(
            [h if e >= 0 else d for h, d, e in zip(held, duration, engine, strict=True)], dtype=np.int64
        ),
        dag=dag,
        engines=engines,
        reason=columns[:, 2].astype(np.uint8),
        recycled=columns[:, 2] >= Reason.WAR,
        command=command,
        first_node=np.array(first, dtype=np.int64),
        command_rank=np.array(command_rank, dtype=np.int64),
        cost_ps=np.array(cost, dtype=np.int64),
        asynchronous=np.array(asynchronous, dtype=np.bool_),
    )
