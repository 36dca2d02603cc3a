"""The rules on messages: a receive waits for its send, a send for a free slot, and a channel is a FIFO."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..ir.ops import OPERATIONS
from ..ir.tables import IntArray
from .violation import CheckableSchedule, Violation, pairs

__all__ = ["check_channels"]


def check_channels(schedule: CheckableSchedule) -> Iterator[Violation]:
    """The violations of the rules ``message``, ``credit`` and ``fifo``. Messages without partner wait for nothing."""
    graph = schedule.graph
    start, end = schedule.start_ps, schedule.end_ps
    send, send_channel, send_number = _numbered(schedule, OPERATIONS.sends)
    receive, receive_channel, receive_number = _numbered(schedule, OPERATIONS.receives)
    width = np.int64(len(graph) + graph.target.slots + 1)
    send_key, receive_key = send_channel * width + send_number, receive_channel * width + receive_number
    _, sent, received = np.intersect1d(send_key, receive_key, assume_unique=True, return_indices=True)
    a, b = send[sent], receive[received]
    yield from pairs(
        schedule,
        "message",
        a,
        b,
        end[a],
        end[b],
        "{b} ends at {at} ps, before its message {a} arrives at {limit} ps",
    )
    _, freed, freeing = np.intersect1d(
        send_key, receive_key + graph.target.slots, assume_unique=True, return_indices=True
    )
    a, b = receive[freeing], send[freed]
    yield from pairs(
        schedule, "credit", a, b, end[a], start[b], "{b} starts at {at} ps, before {a} frees its slot at {limit} ps"
    )
    for node, channel in ((send, send_channel), (receive, receive_channel)):
        next_in_channel = np.flatnonzero(channel[1:] == channel[:-1])
        a, b = node[next_in_channel], node[next_in_channel + 1]
        yield from pairs(
            schedule,
            "fifo",
            a,
            b,
            end[a],
            start[b],
            "{b} starts at {at} ps, before {a}, ahead of it in the channel, ends at {limit} ps",
        )


def _numbered(schedule: CheckableSchedule, chosen: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The nodes of these operations (a mask by code) by channel, then in program order; their channels; their numbers
    in them."""
    nodes = schedule.graph.nodes
    found = np.flatnonzero(chosen[nodes.op])
    found = found[np.argsort(nodes.channel[found], kind="stable")]
    channel = nodes.channel[found].astype(np.int64)
    return found, channel, np.arange(len(found)) - np.searchsorted(channel, channel)
