"""The running state (m, l, O) of an online softmax, and how the attention kernels change it.

One discipline for all of them: :func:`fresh` and :func:`begin` are called outside any per-tile scope, what they make
persists; :func:`weigh`, :func:`extend` and :func:`merge` are called *inside* a scope: all that they allocate goes with
it, and what has to last is copied over the persistent state.

Sources: Milakov and Gimelshein, "Online normalizer calculation for softmax" (arXiv:1805.02867); Dao et al.,
"FlashAttention" (arXiv:2205.14135), section 3.1.
"""

from __future__ import annotations

from typing import NamedTuple

import kernscope as ks
from kernscope import tl

__all__ = ["State", "Weights", "begin", "extend", "fresh", "mask_later_keys", "merge", "positions", "unpack", "weigh"]


class State(NamedTuple):
    """For R query rows: the largest score so far ``m (R, 1)``, the sum of weights ``l (R, 1)`` and the weighted sum of
    values ``acc (R, D)``, all f32."""

    m: ks.TensorHandle
    l: ks.TensorHandle
    acc: ks.TensorHandle


class Weights(NamedTuple):
    """A tile's weights ``p (R, T)``, the factor ``alpha (R, 1)`` that brings what was before to them, and m and l after
    the tile."""

    p: ks.TensorHandle
    alpha: ks.TensorHandle
    m: ks.TensorHandle
    l: ks.TensorHandle


def fresh(rows: int, d: int) -> State:
    """The state before any key."""
    return State(
        tl.full((rows, 1), float("-inf"), tl.float32), tl.zeros((rows, 1), tl.float32), tl.zeros((rows, d), tl.float32)
    )


def unpack(buffer: ks.TensorHandle) -> State:
    """The state as views of one buffer ``(R, D + 2)``: it travels as one message."""
    d = buffer.shape[1] - 2
    return State(buffer[:, d : d + 1], buffer[:, d + 1 :], buffer[:, :d])


def begin(scores: ks.TensorHandle) -> tuple[ks.TensorHandle, ks.TensorHandle, ks.TensorHandle]:
    """The weights, m and l of a first tile with scores ``(R, T)``, in each row of which a key must be seen. With the
    product of the weights with the tile's values they make the state: ``State(m, l, product)``."""
    m = tl.max(scores, axis=1, keep_dims=True)
    p = tl.exp(scores - m)
    return p, m, tl.sum(p, axis=1, keep_dims=True)


def weigh(state: State, scores: ks.TensorHandle) -> Weights:
    """The weights of one more tile with scores ``(R, T)``, and the new m and l."""
    m = tl.maximum(state.m, tl.max(scores, axis=1, keep_dims=True))
    p, alpha = tl.exp(scores - m), tl.exp(state.m - m)
    return Weights(p, alpha, m, state.l * alpha + tl.sum(p, axis=1, keep_dims=True))


def extend(state: State, weights: Weights, product: ks.TensorHandle) -> None:
    """Take one more tile into the state: its weights, and their product ``(R, D)`` with its values."""
    _replace(state, State(weights.m, weights.l, state.acc * weights.alpha + product))


def merge(state: State, other: State) -> None:
    """Take the state of other keys into this one."""
    m = tl.maximum(state.m, other.m)
    mine, theirs = tl.exp(state.m - m), tl.exp(other.m - m)
    _replace(state, State(m, state.l * mine + other.l * theirs, state.acc * mine + other.acc * theirs))


def _replace(state: State, new: State) -> None:
    tl.copy_to(state.m, new.m)
    tl.copy_to(state.l, new.l)
    tl.copy_to(state.acc, new.acc)


def positions(first: int, heads: int, queries: int) -> ks.TensorHandle:
    """The positions ``(heads * queries, 1)`` of query rows, ordered by head, then by query from ``first`` on."""
    rows = tl.arange(0, heads * queries)
    return (rows % queries + first)[:, None]


def mask_later_keys(scores: ks.TensorHandle, query_positions: ks.TensorHandle, first_key: int) -> ks.TensorHandle:
    """The scores ``(R, T)`` with those of keys after the query's position ``(R, 1)`` at minus infinity."""
    keys = tl.arange(first_key, first_key + scores.shape[1])
    masked: ks.TensorHandle = tl.where(query_positions >= keys[None, :], scores, float("-inf"))
    return masked
