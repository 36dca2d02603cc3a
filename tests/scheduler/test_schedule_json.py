"""A schedule's JSON: put together from texts, it is what its document would be written as."""

import json

import pytest

import kernscope as ks
from kernscope import tl
from kernscope.kernels.flash_attention import flash_attention
from kernscope.kernels.gqa_attention_decode_short import gqa_attention_decode_short_kernel
from kernscope.kernels.gqa_attention_prefill_long import gqa_attention_prefill_long_kernel
from kernscope.kernels.matmul import matmul
from kernscope.scheduler.policy.registry import LADDER


@pytest.mark.parametrize("policy", LADDER)
@pytest.mark.parametrize(
    "launch",
    [
        flash_attention.launch("small"),
        gqa_attention_decode_short_kernel.launch("small"),
        gqa_attention_prefill_long_kernel.launch("small"),
        matmul.launch("ragged"),
    ],
    ids=str,
)
def test_the_text_is_the_document(launch: ks.Launch, policy: str) -> None:
    """Byte for byte what ``json.dumps`` makes of the document: messages, composites, ranges, every cause of waiting."""
    schedule = ks.schedule(ks.trace(launch), policy)
    assert schedule.to_json() == json.dumps(schedule.to_dict(), ensure_ascii=True, separators=(",", ":"))


def test_an_empty_kernel() -> None:
    """Without a node the tables are empty lists."""

    @ks.kernel
    def nothing() -> None:
        """No command."""

    schedule = ks.schedule(ks.trace(nothing))
    assert schedule.to_json() == json.dumps(schedule.to_dict(), ensure_ascii=True, separators=(",", ":"))


@pytest.mark.parametrize("policy", LADDER)
def test_a_program_of_a_grid_is_said(policy: str) -> None:
    """The first one too, whose number is 0; a graph without a grid has none."""

    def kernel(x: ks.HbmTensor, o: ks.HbmTensor) -> None:
        tl.store(o[tl.program_id(0), :], tl.load(x[tl.program_id(0), :]))

    rows = ks.hbm((4, 8), "f32")
    for grid, said in ((4, [[0], [1], [2], [3]]), ((2, 2), [[0, 0], [0, 1], [1, 0], [1, 1]]), (None, [])):
        schedule = ks.schedule(ks.trace(kernel, rows, rows, grid=grid, ranks=2), policy)
        document = json.loads(schedule.to_json())
        assert document == json.loads(json.dumps(schedule.to_dict()))
        assert sorted({tuple(node["program"]) for node in document["nodes"] if "program" in node}) == [
            *map(tuple, said)
        ]
