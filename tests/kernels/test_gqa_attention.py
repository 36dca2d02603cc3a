"""Grouped-query attention: ring and chain as the founding records ask, and the naive twins that show why."""

from typing import Any

import kernelcases
import numpy as np
import pytest

import kernscope as ks
from kernscope.face.api import compare_with_launch

KERNELS = (
    "gqa_attention_prefill_short",
    "gqa_attention_prefill_long",
    "gqa_attention_decode_short",
    "gqa_attention_decode_long",
)
D = 32


def arrays(s_q: int, s_kv: int) -> dict[str, Any]:
    """Tensors of one KV head: q and o (8, S_q, D), k and v (S_kv, D); o is described only."""
    rng = np.random.default_rng(0)
    shapes = {"q": (8, s_q, D), "k": (s_kv, D), "v": (s_kv, D)}
    given: dict[str, Any] = {name: rng.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}
    return given | {"o": ks.hbm((8, s_q, D), "f32")}


def plain_attention(q: Any, k: Any, v: Any, *, causal: bool) -> Any:
    """softmax(q k^T / sqrt(D)) v, written once more and on purpose not as the kernels' reference is: one query at a
    time, in f64."""
    heads, s_q, d = q.shape
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    out = np.empty((heads, s_q, d))
    for head in range(heads):
        for i in range(s_q):
            seen = len(k) - s_q + i + 1 if causal else len(k)
            weights = np.exp(k[:seen] @ q[head, i] / np.sqrt(d))
            out[head, i] = weights @ v[:seen] / weights.sum()
    return out


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(
    ("module", "ranks", "s_q", "s_kv", "tiles"),
    [
        ("gqa_attention_prefill_short", 1, 8, 24, {"TILE_S_Q": 4, "TILE_S_KV": 8}),
        ("gqa_attention_prefill_short", 2, 8, 8, {"TILE_S_Q": 2, "TILE_S_KV": 4}),
        ("gqa_attention_prefill_long", 1, 4, 16, {"TILE_S_Q": 2, "TILE_S_KV": 4}),
        ("gqa_attention_prefill_long", 2, 4, 16, {"TILE_S_Q": 2, "TILE_S_KV": 4}),
        ("gqa_attention_prefill_long", 3, 12, 24, {"TILE_S_Q": 2, "TILE_S_KV": 4}),
        ("gqa_attention_prefill_long", 4, 32, 32, {"TILE_S_Q": 4, "TILE_S_KV": 2}),
        ("gqa_attention_prefill_long", 4, 8, 64, {}),
    ],
)
def test_prefill_agrees_with_plain_attention(
    module: str, ranks: int, s_q: int, s_kv: int, tiles: dict[str, int], causal: bool
) -> None:
    """Each rank's part of the output is right, causal or not, for any number of ranks, tiles and query blocks."""
    given = arrays(s_q, s_kv)
    graph = ks.trace(kernelcases.kernel_of(module), *given.values(), ranks=ranks, causal=causal, **tiles)
    expected = plain_attention(given["q"], given["k"], given["v"], causal=causal)
    np.testing.assert_allclose(ks.run(graph, poison=True)["o"], expected, atol=2e-3)


@pytest.mark.parametrize(
    ("module", "ranks", "s_q", "s_kv", "tiles"),
    [
        ("gqa_attention_decode_short", 1, 1, 24, {"TILE_S_KV": 8}),
        ("gqa_attention_decode_short", 2, 4, 16, {"TILE_S_Q": 2, "TILE_S_KV": 16}),
        ("gqa_attention_decode_long", 1, 1, 16, {}),
        ("gqa_attention_decode_long", 2, 1, 16, {"TILE_S_KV": 4}),
        ("gqa_attention_decode_long", 3, 4, 24, {"TILE_S_Q": 2, "TILE_S_KV": 4}),
    ],
)
def test_decode_agrees_with_plain_attention(
    module: str, ranks: int, s_q: int, s_kv: int, tiles: dict[str, int]
) -> None:
    """The output is right for any number of ranks and tiles."""
    given = arrays(s_q, s_kv)
    graph = ks.trace(kernelcases.kernel_of(module), *given.values(), ranks=ranks, **tiles)
    expected = plain_attention(given["q"], given["k"], given["v"], causal=False)
    np.testing.assert_allclose(ks.run(graph, poison=True)["o"], expected, atol=2e-3)


@pytest.mark.parametrize(
    ("ranks", "s_q", "s_kv", "tile_q", "tile"), [(2, 4, 16, 2, 4), (3, 12, 24, 2, 4), (4, 8, 64, 2, 2), (1, 4, 8, 2, 2)]
)
def test_the_ring_passes_on_one_message_a_tile_and_step(
    ranks: int, s_q: int, s_kv: int, tile_q: int, tile: int
) -> None:
    """ipcq_copy = query blocks x tiles per rank x C x (C - 1): K and V of a tile are one message, and every tile visits
    all ranks, also those that see none of it."""
    given = arrays(s_q, s_kv)
    kernel = kernelcases.kernel_of("gqa_attention_prefill_long")
    graph = ks.trace(kernel, *given.values(), ranks=ranks, TILE_S_Q=tile_q, TILE_S_KV=tile)
    blocks, tiles = s_q // ranks // tile_q, s_kv // ranks // tile
    assert graph.count("ipcq/ipcq_copy") == blocks * tiles * ranks * (ranks - 1)


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_the_chain_passes_on_one_message_a_rank(ranks: int) -> None:
    """Decoding reduces along a chain: C - 1 messages for a query block, each with m, l and O."""
    given = arrays(1, 4 * ranks)
    graph = ks.trace(kernelcases.kernel_of("gqa_attention_decode_long"), *given.values(), ranks=ranks, TILE_S_KV=2)
    assert graph.count("ipcq/ipcq_copy") == ranks - 1
    assert {node.work[0] for node in graph if node.op == "send"} <= {8 * (D + 2) * 4}


def most_in_flight(schedule: ks.Schedule) -> int:
    """The largest number of messages of one channel that are sent and not yet received, at one time."""
    most = 0
    for channel in range(len(schedule.graph.channels)):
        events = [
            (int(schedule.start_ps[node.id]), 1) if node.op == "send" else (int(schedule.end_ps[node.id]), -1)
            for node in (schedule.graph[i] for i in np.flatnonzero(schedule.graph.nodes.channel == channel).tolist())
        ]
        depth = 0
        for _, change in sorted(events):
            depth += change
            most = max(most, depth)
    return most


@pytest.mark.parametrize("policy", ["lazy", "list"])
def test_at_most_one_message_is_in_flight_in_a_direction(policy: str) -> None:
    """Where the ranks have equal work a channel never holds two messages: the tile's next step needs its last one."""
    graph = ks.trace(
        kernelcases.kernel_of("gqa_attention_prefill_long"),
        ks.hbm((8, 64, 128), "f16"),
        ks.hbm((2048, 128), "f16"),
        ks.hbm((2048, 128), "f16"),
        ks.hbm((8, 64, 128), "f32"),
        ranks=4,
    )
    assert graph.count("ipcq/ipcq_copy") == 8 * 4 * 3
    assert most_in_flight(ks.schedule(graph, policy, effort="fast")) == 1


def test_messages_in_flight_are_counted() -> None:
    """The count can fail: where a causal mask leaves some ranks with less work, they run ahead of the others, as far as
    a channel's two slots let them."""
    graph = ks.trace(kernelcases.kernel_of("gqa_attention_prefill_long").launch("self"))
    assert most_in_flight(ks.schedule(graph, "lazy")) == 2


@pytest.mark.parametrize("module", kernelcases.NAIVE)
def test_a_naive_twin_is_right_where_it_fits(module: str) -> None:
    """The twins compute the same: only their scratch differs."""
    launch = kernelcases.kernel_of(module).launch("small")
    given = kernelcases.numbers(launch)
    (comparison,) = compare_with_launch(launch, given, ks.run(ks.trace(launch), given, poison=True))
    assert comparison.ok


@pytest.mark.parametrize("module", kernelcases.NAIVE)
def test_a_naive_twin_overflows_at_128k_and_is_told_why(module: str) -> None:
    """The twin's scratch grows with the context: tracing raises, and KS101 names lines of the twin and a remedy."""
    launch = kernelcases.kernel_of(module).launch("128k")
    with pytest.raises(ks.ScratchOverflowError) as caught:
        ks.trace(launch)
    assert caught.value.help
    # Larger tiles make a smaller graph; what is held is the same slices, and larger results.
    (finding,) = ks.lint(launch, select=["KS101"], TILE_S_KV=2048)
    assert finding.severity == "error"
    assert finding.location is not None
    assert finding.location.file.endswith(f"{module}.py")
    assert finding.help


REFUSED = [
    ("gqa_attention_prefill_long", 3, 12, 32, {}, "32 keys do not divide among 3 ranks"),
    ("gqa_attention_prefill_long", 4, 6, 32, {}, "6 queries do not divide among 4 ranks"),
    ("gqa_attention_prefill_long", 2, 4, 32, {"TILE_S_KV": 5}, "do not divide into tiles of 5"),
    ("gqa_attention_prefill_long", 2, 12, 32, {"TILE_S_Q": 4}, "do not divide into tiles of 4"),
    ("gqa_attention_prefill_long", 2, 16, 8, {}, "causal attention of 16 queries over 8 keys"),
    ("gqa_attention_prefill_short", 1, 8, 24, {"TILE_S_KV": 0}, "in tiles of 0"),
    ("gqa_attention_decode_short", 2, 1, 24, {}, "1 queries do not divide among 2 ranks"),
    ("gqa_attention_decode_long", 5, 1, 24, {}, "24 keys do not divide among 5 ranks"),
    ("gqa_attention_decode_long", 32, 1, 24, {}, "24 keys do not divide among 32 ranks"),
]


@pytest.mark.parametrize(("module", "ranks", "s_q", "s_kv", "tiles", "message"), REFUSED)
def test_what_does_not_divide_is_refused(
    module: str, ranks: int, s_q: int, s_kv: int, tiles: dict[str, int], message: str
) -> None:
    """The error says what does not divide, and what to give."""
    with pytest.raises(ks.ShapeError, match=message) as caught:
        ks.trace(kernelcases.kernel_of(module), *arrays(s_q, s_kv).values(), ranks=ranks, **tiles)
    assert caught.value.help


@pytest.mark.parametrize("module", KERNELS)
def test_tensors_of_other_shapes_are_refused(module: str) -> None:
    """q without heads, or K and V of different lengths, are refused with all shapes named."""
    kernel = kernelcases.kernel_of(module)
    q, k, v, o = arrays(4, 16).values()
    with pytest.raises(ks.ShapeError, match="give q and o of shape"):
        ks.trace(kernel, q[0], k, v, ks.hbm((4, D), "f32"))
    with pytest.raises(ks.ShapeError, match="give q and o of shape"):
        ks.trace(kernel, q, k, v[:8].copy(), o)


@pytest.mark.slow
def test_128k_keys_run_end_to_end() -> None:
    """The headline: 131,072 keys over 8 ranks trace within the budget, lint clean, count the messages of the ring,
    schedule with one message in flight, and execute to what numpy gives."""
    launch = kernelcases.kernel_of("gqa_attention_prefill_long").launch("128k")
    graph = ks.trace(launch)
    assert graph.count("ipcq/ipcq_copy") == 1 * 256 * 8 * 7
    assert ks.liveness(graph).peak_bytes == 702_720
    assert list(ks.lint(graph)) == []
    schedule = ks.schedule(graph, "lazy")
    assert most_in_flight(schedule) == 1
    given = kernelcases.numbers(launch)
    (comparison,) = compare_with_launch(launch, given, ks.run(graph, given, order=schedule))
    assert comparison.ok
