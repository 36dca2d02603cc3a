"""Which messages do not find their partner, or find one that expects another tile; and how to say so."""

from __future__ import annotations

import attrs
import numpy as np

from .errors import UnmatchedMessageError
from .forms.counts import plural
from .graph import Graph
from .ops import OPERATIONS
from .tables import IntArray

__all__ = [
    "FaultText",
    "MessageFault",
    "channel_ends",
    "describe_faults",
    "fault_groups",
    "message_faults",
    "refuse_faults",
    "refuse_unmatched",
]


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

    @property
    def nodes(self) -> tuple[int, ...]:
        """The ends that are there."""
        return tuple(node for node in (self.send, self.recv) if node is not None)


def channel_ends(graph: Graph) -> list[tuple[list[int], list[int]]]:
    """By channel its sends and its recvs, each in its own program order."""
    channel = graph.nodes.channel
    used = np.flatnonzero(channel >= 0)
    is_send = OPERATIONS.sends[graph.nodes.op[used]]
    sides = []
    for nodes in (used[is_send], used[~is_send]):
        order = nodes[np.argsort(channel[nodes], kind="stable")]
        ends = np.cumsum(np.bincount(channel[nodes], minlength=len(graph.channels)))
        sides.append([part.tolist() for part in np.split(order, ends)[:-1]])
    return list(zip(*sides, strict=True))


def message_faults(graph: Graph) -> list[MessageFault]:
    """All of them, by channel, then in the order of messages. On a channel the i-th send meets the i-th recv."""
    layouts = _message_layouts(graph, np.flatnonzero(graph.nodes.channel >= 0))
    found: list[MessageFault] = []
    for channel, (sent, received) in enumerate(channel_ends(graph)):
        counts = {"sends": len(sent), "recvs": len(received)}
        paired = min(len(sent), len(received))
        for send, recv in zip(sent[:paired], received[:paired], strict=True):
            if layouts[send] != layouts[recv]:
                found.append(MessageFault(channel, send, recv, **counts))
        found += [MessageFault(channel, send, None, **counts) for send in sent[paired:]]
        found += [MessageFault(channel, None, recv, **counts) for recv in received[paired:]]
    return found


def _message_layouts(graph: Graph, on_channel: IntArray) -> dict[int, tuple[object, ...]]:
    """By node the shape and dtype of its message: a send reads one view, a receive writes one."""
    found: dict[int, tuple[object, ...]] = dict.fromkeys(on_channel.tolist(), ())
    on_channel = on_channel[np.diff(graph.access_start)[on_channel] > 0]  # a signal has no bytes
    rows = graph.access_start[on_channel]
    for node, number in zip(on_channel.tolist(), graph.accesses.layout[rows].tolist(), strict=True):
        layout = graph.layouts[number]
        found[node] = (layout.shape, layout.dtype)
    return found


# --- in words ---------------------------------------------------------------------------------------------------------


@attrs.frozen
class FaultText:
    """What there is to say of faults alike: a message, the nodes it speaks of with their roles, and what to do."""

    message: str
    places: tuple[tuple[str, int], ...]
    help: str


def fault_groups(graph: Graph, faults: list[MessageFault]) -> list[list[MessageFault]]:
    """The faults of one line that lack a partner, and those of each pair of lines that do not fit."""
    groups: dict[tuple[int, int], list[MessageFault]] = {}
    for fault in faults:
        lines = [-1 if node is None else int(graph.nodes.stack[node]) for node in (fault.send, fault.recv)]
        groups.setdefault((lines[0], lines[1]), []).append(fault)
    return list(groups.values())


def describe_faults(graph: Graph, group: list[MessageFault]) -> FaultText:
    """A group of faults in words, by its first."""
    return _mismatch(graph, group[0]) if group[0].is_pair else _lonely(graph, group[0])


def refuse_unmatched(graph: Graph) -> None:
    """Raise ``UnmatchedMessageError``, in the words of KS401, where a message does not find its partner."""
    if len(graph.channels):
        refuse_faults(graph, message_faults(graph))


def refuse_faults(graph: Graph, faults: list[MessageFault]) -> None:
    """The same of faults that are found already."""
    if not faults:
        return
    groups = fault_groups(graph, faults)
    text = describe_faults(graph, groups[0])
    more = len(faults) - 1
    error = UnmatchedMessageError(
        text.message + (f" (and {plural(more, 'more message')} at fault)" if more else ""),
        help=text.help,
        nodes=sorted({node for fault in faults for node in fault.nodes}),
    )
    for role, node in text.places:
        error.at(graph[node].location, role)
    raise error


def _mismatch(graph: Graph, fault: MessageFault) -> FaultText:
    assert fault.send is not None and fault.recv is not None
    send, recv = graph[fault.send], graph[fault.recv]
    if not send.reads or not recv.writes:
        return _signal_mismatch(graph, fault.send, fault.recv)
    sent, received = send.reads[0].layout, recv.writes[0].layout
    asks = f"{received.shape}, {received.dtype!r}"
    return FaultText(
        message=f"rank {graph[fault.send].rank} sends {sent.dtype}{list(sent.shape)}, rank {graph[fault.recv].rank} "
        f"receives {received.dtype}{list(received.shape)}",
        places=(("received here", fault.recv), ("sent here", fault.send)),
        help=f"receive what is sent: shape and dtype {sent.shape}, {sent.dtype!r} instead of {asks}; messages of a "
        "channel meet in order, so one sent or received too many shifts all that follow",
    )


def _signal_mismatch(graph: Graph, send: int, recv: int) -> FaultText:
    one, other = graph[send], graph[recv]
    return FaultText(
        message=f"{one.op} of rank {one.rank} meets {other.op} of rank {other.rank}",
        places=(("received here", recv), ("sent here", send)),
        help="tl.notify meets tl.wait_for, tl.send meets tl.recv; both go through one channel, in order, so one "
        "too many shifts all that follow",
    )


def _lonely(graph: Graph, fault: MessageFault) -> FaultText:
    channel = fault.channel
    sender, receiver = int(graph.channels.sender[channel]), int(graph.channels.receiver[channel])
    direction = graph.target.directions[graph.channels.direction[channel]]
    arrival = graph.target.directions[graph.channels.arrival[channel]]
    counts = f"({fault.sends} sent, {fault.recvs} received on this channel)"
    if fault.send is not None and not graph[fault.send].reads:
        return FaultText(
            message=f'notify to "{direction}" of rank {sender}: rank {receiver} never waits for it {counts}',
            places=(("sent here", fault.send),),
            help=f'on rank {receiver} add `tl.wait_for("{arrival}")`, or do not notify it: guard this line by '
            "tl.program_id(0)",
        )
    if fault.send is not None:
        layout = graph[fault.send].reads[0].layout
        return FaultText(
            message=f'send to "{direction}" of rank {sender}: rank {receiver} never receives it {counts}',
            places=(("sent here", fault.send),),
            help=f'on rank {receiver} add `tl.recv("{arrival}", {layout.shape}, {layout.dtype!r})`, or do not send '
            "there: guard this line by tl.program_id(0)",
        )
    assert fault.recv is not None
    if not graph[fault.recv].writes:
        return FaultText(
            message=f'wait_for "{arrival}" of rank {receiver}: rank {sender} never notifies it {counts}',
            places=(("waits here", fault.recv),),
            help=f'on rank {sender} add `tl.notify("{direction}")`, or do not wait here: guard this line by '
            "tl.program_id(0)",
        )
    return FaultText(
        message=f'{graph[fault.recv].op} from "{arrival}" of rank {receiver}: rank {sender} never sends it {counts}',
        places=(("received here", fault.recv),),
        help=f'on rank {sender} add `tl.send("{direction}", ...)`, or do not receive here: guard this line by '
        "tl.program_id(0)",
    )
