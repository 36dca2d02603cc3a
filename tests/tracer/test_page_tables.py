"""Loops over host data: page tables and lengths as keyword arguments say which regions are loaded, and how often."""

import math
from typing import Any

import numpy as np

import kernscope as ks
from kernscope import tl

PAGE = 16


@ks.kernel
def paged_attention(q: Any, k: Any, v: Any, o: Any, *, table: Any, lengths: Any) -> None:
    """One query a sequence, over the keys of its pages: of ``table[i]`` as many as ``lengths[i]`` keys fill."""
    for i, length in enumerate(lengths):
        m = tl.full((1, 1), float("-inf"), tl.float32)
        total, acc = tl.zeros((1, 1), tl.float32), tl.zeros((1, q.shape[1]), tl.float32)
        query = tl.load(q[i : i + 1, :])
        for page in range(tl.cdiv(length, PAGE)):
            keys = min(PAGE, length - page * PAGE)
            with tl.scratch_scope():
                s = tl.dot(query, tl.trans(tl.load(k[table[i, page], 0:keys, :]))) * (1 / math.sqrt(q.shape[1]))
                m_new = tl.maximum(m, tl.max(s, axis=1, keep_dims=True))
                p, alpha = tl.exp(s - m_new), tl.exp(m - m_new)
                tl.copy_to(total, total * alpha + tl.sum(p, axis=1, keep_dims=True))
                tl.copy_to(acc, acc * alpha + tl.dot(p, tl.load(v[table[i, page], 0:keys, :])))
                tl.copy_to(m, m_new)
        tl.store(o[i : i + 1, :], acc / total)


def test_a_page_table_steers_loads_and_loops() -> None:
    """The numbers are those of attention over each sequence's own keys; as many pages are loaded as it has; another
    table gives another graph of the same size."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, 32), (9, PAGE, 32), (9, PAGE, 32)))
    table, lengths = np.array([[4, 0, 7], [2, 8, 0], [1, 5, 3]]), np.array([40, 17, 48])
    o = ks.hbm((3, 32), "f32")
    graph = ks.trace(paged_attention, q, k, v, o, table=table, lengths=lengths)
    assert graph.count("memory/dma_read") == 3 + 2 * (3 + 2 + 3)
    assert ks.lint(graph).ok
    found = ks.run(graph)["o"]
    for i, length in enumerate(lengths.tolist()):
        keys, values = (x[table[i]].reshape(-1, 32)[:length] for x in (k, v))
        weights = np.exp(q[i] @ keys.T / math.sqrt(32))
        np.testing.assert_allclose(found[i], weights @ values / weights.sum(), rtol=1e-4, atol=1e-5)
    other = ks.trace(paged_attention, q, k, v, o, table=table[::-1].copy(), lengths=lengths)
    assert other != graph and len(other) == len(graph)
