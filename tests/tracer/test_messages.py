"""Messages: sends and receives on channels, posted receives, and the neighbours they need."""

from collections.abc import Callable
from typing import Any

import pytest

import kernscope as ks
from kernscope import tl

X = ks.hbm((8, 16), "f16")


def mesh(rows: int, cols: int) -> ks.ir.target.Target:
    return ks.ir.target.Target(topology="mesh2d", shape=(rows, cols))


def test_a_message_is_one_log_entry() -> None:
    """`ipcq/ipcq_copy` for the send, on its link; receives and waits have no entry, no engine and no work."""

    def kernel(x: Any) -> None:
        if tl.program_id(0) == 0:
            assert tl.send("next", tl.load(x)) is None
        else:
            h = tl.recv("prev", (8, 16), tl.float16)
            assert (h.shape, h.dtype, h.address) == ((8, 16), tl.float16, 0)

    graph = ks.trace(kernel, X, ranks=2)
    assert graph.op_log() == ["memory/dma_read", "ipcq/ipcq_copy"]
    assert [node.op for node in graph] == ["load", "send", "recv"]
    assert [node.engine for node in graph] == ["dma_read", "link:next", "none"]
    assert [node.work for node in graph] == [(256, 0, 0), (256, 0, 0), (0, 0, 0)]
    assert (graph.count("recv"), graph.count("ipcq/ipcq_copy")) == (1, 1)


def test_a_receive_takes_bytes_or_fills_a_handle() -> None:
    """`recv(out=h)` and `recv_async(out=h)` fill h, also a view; the others allocate."""

    def kernel(x: Any) -> None:
        if tl.program_id(0) == 0:
            for _ in range(4):
                tl.send("next", tl.load(x))
            return
        buffer = tl.empty((2, 8, 16), "f16")
        half = buffer[1]
        assert tl.recv("prev", (8, 16), "f16", out=half) is half
        future = tl.recv_async("prev", (8, 16), "f16", out=half)
        assert tl.wait(future) is half
        fresh = tl.recv("prev", [8, 16], "f16")
        assert fresh.address == 512
        posted = tl.wait(tl.recv_async("prev", (8, 16), "f16"))
        assert posted.address == 768

    graph = ks.trace(kernel, X, ranks=2)
    ops = [node.op for node in graph if node.rank == 1]
    assert ops == ["recv", "recv_async", "wait", "recv", "recv_async", "wait"]


def test_both_ends_of_a_channel_are_one_row() -> None:
    """What 0 sends `next` arrives at 1 from `prev`: one channel, whoever is traced first."""

    def kernel(x: Any) -> None:
        h = tl.load(x)
        tl.send("prev", h)
        tl.recv("next", (8, 16), "f16")

    graph = ks.trace(kernel, X, ranks=3)
    assert len(graph.channels) == 3
    pairs = set(zip(graph.channels.sender.tolist(), graph.channels.receiver.tolist(), strict=True))
    assert pairs == {(0, 2), (1, 0), (2, 1)}
    for channel in range(3):
        ops = sorted(node.op for node in graph if node.channel == channel)
        assert ops == ["recv", "send"]


def test_on_two_ranks_next_and_prev_are_two_channels() -> None:
    """Both lead to the other rank, and messages keep their direction."""

    def kernel(x: Any) -> None:
        tl.send("next", tl.load(x))
        tl.recv("prev", (8, 16), "f16")
        tl.send("prev", tl.load(x))
        tl.recv("next", (8, 16), "f16")

    graph = ks.trace(kernel, X, ranks=2)
    assert len(graph.channels) == 4


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: tl.send("nxt", tl.load(x)), ks.ChannelError, "no direction 'nxt'"),
        (lambda x: tl.send("north", tl.load(x)), ks.ChannelError, "no direction 'north' on a ring"),
        (lambda x: tl.recv("up", (4,), "f16"), ks.ChannelError, "no direction 'up'"),
        (lambda x: tl.send("next", x), ks.ArgumentError, "HBM tensor x"),
        (lambda x: tl.send("next", 1.0), ks.ArgumentError, "1.0"),
        (lambda x: tl.send(tl.load(x), "next"), ks.ArgumentError, "'next' is no handle"),
        (lambda x: tl.recv("prev", (0,), "f16"), ks.ShapeError, "(0,)"),
        (lambda x: tl.recv("prev", (4,), "f61"), ks.DTypeError, "f61"),
        (lambda x: tl.recv("prev", (4,), "f16", out=tl.load(x)), ks.ShapeError, "(8, 16)"),
        (lambda x: tl.recv("prev", (8, 16), "f32", out=tl.load(x)), ks.DTypeError, "f32"),
        (lambda x: tl.wait(tl.load(x)), ks.ArgumentError, "is no future"),
        (lambda x: tl.exp(tl.recv_async("prev", (4,), "f16")), ks.ArgumentError, "future"),
        (lambda x: tl.recv_async("prev", (4,), "f16") + 1.0, ks.ArgumentError, "future"),
        (lambda x: tl.load(x) + tl.recv_async("prev", (8, 16), "f16"), ks.ArgumentError, "future"),
        (lambda x: tl.recv_async("prev", (4,), "f16").shape, ks.UnknownNameError, "'shape'"),
    ],
)
def test_what_does_not_fit_is_refused(call: Callable[[Any], Any], error: type[ks.KernscopeError], words: str) -> None:
    """At the line, with help; a future is told to be waited for."""
    with pytest.raises(error) as caught:
        ks.trace(call, X, ranks=2)
    assert words in caught.value.message
    assert caught.value.help
    assert caught.value.places[0][1].file == __file__
    if "future" in words and "no future" not in words:
        assert "tl.wait" in caught.value.help


def test_alone_there_is_nobody_to_send_to() -> None:
    """One rank has no neighbour; the help names the guards."""
    with pytest.raises(ks.ChannelError, match="rank 0 of 1 has no neighbour 'next'") as caught:
        ks.trace(lambda x: tl.send("next", tl.load(x)), X)
    assert "num_programs" in caught.value.help
