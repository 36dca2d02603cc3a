"""A schedule's JSON: put together from texts, it is what its document would be written as."""

import json

import pytest

import kernscope as ks
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
