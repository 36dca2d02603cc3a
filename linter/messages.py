"""Which messages do not find their partner, or find one that expects another tile."""

from __future__ import annotations

import attrs
import numpy as np

from ..ir.graph import Graph
from ..ir.ops import OPERATIONS

__all__ = ["MessageFault", "message_faults"]


@attrs.frozen
class MessageFault:
    """A send (node) without recv, a recv (node) without send, or a pair of both whose shapes or dtypes differ; on a
    channel (row) with so many ``sends`` and ``recvs``."""

    channel: int
    send: int | None
    recv: int | None
    sends: int
    recvs: int

    @property
    def is_pair(self) -> bool:
        """Whether both ends are there."""
        return self.send is not None and self.recv is not None


def message_faults(graph: Graph) -> list[MessageFault]:
    """All of them, by channel, then in the order of messages. On a channel the i-th send meets the i-th recv."""
    nodes = graph.nodes
    found: list[MessageFault] = []
    on_channel = np.flatnonzero(nodes.channel >= 0)
    sends = OPERATIONS.sends[nodes.op[on_channel]]
    layouts = _message_layouts(graph, on_channel)
    for channel in range(len(graph.channels)):
        here = nodes.channel[on_channel] == channel
        sent, received = on_channel[here & sends].tolist(), on_channel[here & ~sends].tolist()
        counts = {"sends": len(sent), "recvs": len(received)}
        paired = min(len(sent), len(received))
        for send, recv in zip(sent[:paired], received[:paired], strict=True):
            if layouts[send] != layouts[recv]:
                found.append(MessageFault(channel, send, recv, **counts))
        found += [MessageFault(channel, send, None, **counts) for send in sent[paired:]]
        found += [MessageFault(channel, None, recv, **counts) for recv in received[paired:]]
    return found


def _message_layouts(
    graph: Graph, on_channel: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> dict[int, tuple[object, ...]]:
    """By node the shape and dtype of its message: a send reads one view, a receive writes one."""
    rows = graph.access_start[on_channel]
    found: dict[int, tuple[object, ...]] = {}
    for node, number in zip(on_channel.tolist(), graph.accesses.layout[rows].tolist(), strict=True):
        layout = graph.layouts[number]
        found[node] = (layout.shape, layout.dtype)
    return found
