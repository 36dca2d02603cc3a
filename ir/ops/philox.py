"""Philox, the counter-based random numbers of Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (2011):
the arithmetic on numpy arrays, with the constants, the words and the float conversions that Triton's language has, bit
for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from .functions import high_product
from .numbers import Array

__all__ = ["ROUNDS", "normal_pair", "philox", "random_words", "uniform"]

#: How many rounds Triton's functions make where no other number is given.
ROUNDS = 10

#: By width in bytes: what raises the two words of the key, and the two multipliers of a round.
_KEYS = {4: (0x9E3779B9, 0xBB67AE85), 8: (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)}
_MULTIPLIERS = {4: (0xD2511F53, 0xCD9E8D57), 8: (0xD2E7470EE14C6C93, 0xCA5A826395121157)}
#: The steps of a uniform number: the largest of which there are ``2**31`` (``2**63``) below 1.
_STEPS = {4: 4.6566127342e-10, 8: 1.0842020432385337e-19}

_LOW = np.uint64(0xFFFFFFFF)


def philox(seed: Any, c0: Array, c1: Array, c2: Array, c3: Array, rounds: int = ROUNDS) -> tuple[Array, ...]:
    """The four words that counters (u32, or u64: the wider generator) and a seed of 64 bits give."""
    word = c0.dtype.type
    key = np.asarray(seed).astype(np.uint64)
    k0, k1 = (key & _LOW, key >> np.uint64(32)) if c0.dtype.itemsize == 4 else (key, np.zeros_like(key))
    k0, k1 = np.atleast_1d(k0.astype(word)), np.atleast_1d(k1.astype(word))
    (raise_0, raise_1), (a, b) = _KEYS[c0.dtype.itemsize], _MULTIPLIERS[c0.dtype.itemsize]
    for _ in range(rounds):
        high_a, high_b = high_product(c0, np.asarray(word(a))), high_product(c2, np.asarray(word(b)))
        c0, c1, c2, c3 = high_b ^ c1 ^ k0, c2 * word(b), high_a ^ c3 ^ k1, c0 * word(a)
        k0, k1 = k0 + word(raise_0), k1 + word(raise_1)
    return c0, c1, c2, c3


def random_words(seed: Any, offset: Array, rounds: int = ROUNDS) -> tuple[Array, ...]:
    """Four words of u32 for each offset, an integer of at most 64 bits, as ``randint4x``."""
    low = np.atleast_1d(offset).astype(np.uint32)
    zero = np.zeros_like(low)
    high = zero
    if offset.dtype.itemsize > 4:
        high = np.atleast_1d(offset >> offset.dtype.type(32)).astype(np.uint32)
    words = philox(seed, low, high, zero, zero, rounds)
    shape = np.broadcast_shapes(offset.shape, np.shape(seed))
    return tuple(w.reshape(shape) for w in words)


def uniform(words: Array) -> Array:
    """Floats (f32, of u64 words too) in [0, 1)."""
    signed = words.view(np.dtype(f"i{words.dtype.itemsize}"))
    size = np.where(signed < 0, ~signed, signed)
    return size.astype(np.float32) * np.float32(_STEPS[words.dtype.itemsize])


def normal_pair(u1: Array, u2: Array) -> tuple[Array, Array]:
    """Two normal numbers of two uniform ones, in f32 (Box and Muller, 1958)."""
    angle = np.float32(6.283185307179586) * u2
    radius = np.sqrt(np.float32(-2.0) * np.log(np.maximum(np.float32(1.0e-7), u1)))
    return radius * np.cos(angle), radius * np.sin(angle)
