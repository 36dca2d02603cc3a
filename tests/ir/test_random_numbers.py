"""Random numbers: the known answers of Philox, and what Triton's own functions gave."""

from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.ir.ops.philox import normal_pair, philox, random_words, uniform

#: Random123's known answers for philox4x32-10: counter, key (as one seed), words.
KNOWN = [
    ((0, 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, 2**64 - 1, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        0x299F31D0A4093822,
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "seed", "words"), KNOWN)
def test_the_narrow_generator_gives_the_known_answers(counter: Any, seed: int, words: Any) -> None:
    """Of Salmon et al.: 32-bit words, ten rounds."""
    found = philox(np.uint64(seed), *(np.array([c], dtype=np.uint32) for c in counter))
    assert [int(word[0]) for word in found] == list(words)


def test_the_wide_generator_is_that_of_numpy() -> None:
    """numpy's bit generator counts up before its first words, and has the key's other half 0."""
    seed = 0x123456789ABCDEF
    theirs = np.random.Philox(key=[seed, 0], counter=[4, 5, 6, 7]).random_raw(4)
    ours = philox(np.uint64(seed), *(np.array([c], dtype=np.uint64) for c in (5, 5, 6, 7)))
    assert [int(word[0]) for word in ours] == theirs.tolist()


#: What Triton's functions gave in its interpreter, by seed: of the offsets 1, 1 + 4294967311 and 1 + 5 * 4294967311 the
#: words of ``tl.randint4x``; of the offsets 0, 1 and 5 ``tl.rand`` and ``tl.randn``.
TRITON = {
    7: (
        [
            [1747881627, 3415718931, 737869675, 4113952422],
            [1347554096, 574331762, 888717209, 1116842679],
            [878132651, 1945347322, 1547676195, 55945509],
        ],
        ["0x1.73f0b8p-4", "0x1.a0ba38p-1", "0x1.5abd58p-1"],
        ["-0x1.18607ep+1", "-0x1.14c6acp-1", "-0x1.a72760p-2"],
    ),
    12345678901234567: (
        [
            [2023696432, 3037652929, 3029638111, 2861207101],
            [3532809904, 3596202612, 735073431, 2595923352],
            [645096249, 1199293130, 3226799632, 2229603980],
        ],
        ["0x1.93e138p-1", "0x1.e27c9ep-1", "0x1.2bd84ap-2"],
        ["-0x1.31525cp-1", "-0x1.2f2ceap-2", "0x1.362c58p+0"],
    ),
}


@pytest.mark.parametrize("seed", TRITON)
def test_the_bits_are_those_of_triton(seed: int) -> None:
    """All four words, also of offsets of 64 bits; uniform floats to the bit, normal ones as f32 sines differ."""
    words, evenly, normally = TRITON[seed]
    offset = np.array([0, 1, 5], dtype=np.int64) * 4294967311 + 1
    assert np.stack(random_words(np.uint64(seed), offset), axis=1).tolist() == words
    u0, u1, *_ = map(uniform, random_words(np.uint64(seed), np.array([0, 1, 5], dtype=np.int32)))
    assert u0.tolist() == [float.fromhex(text) for text in evenly]
    np.testing.assert_allclose(normal_pair(u0, u1)[0], [float.fromhex(text) for text in normally], rtol=1e-5)


@pytest.mark.parametrize("rounds", [0, 1, 7, 10])
def test_four_words_begin_with_the_one(rounds: int) -> None:
    """``randint4x`` holds what ``randint`` gives; the same of floats. Each is a function of seed and offset alone."""

    def kernel(o: Any, four: Any, *, name: str) -> None:
        offset = tl.arange(0, 32)
        one, several = getattr(tl, name), getattr(tl, f"{name}4x")
        tl.store(o, one(5, offset, rounds))
        for row, tile in enumerate(several(5, offset, n_rounds=rounds)):
            tl.store(four[row], tile)

    for name, dtype in (("randint", "u32"), ("rand", "f32"), ("randn", "f32")):
        graph = ks.trace(kernel, ks.hbm((32,), dtype), ks.hbm((4, 32), dtype), name=name)
        got = ks.run(graph)
        np.testing.assert_array_equal(got["four"][0], got["o"])
        assert rounds < 7 or len(np.unique(got["four"])) > 100
        assert graph.count(f"math/{name}") == 2


def test_a_seed_may_be_computed() -> None:
    """An integer tile as seed gives what the number gives; a negative seed is its 64 bits; wide offsets count whole."""
    offset = np.array([0, 1, 2**32, 2**40 + 3], dtype=np.int64)

    def kernel(seeds: Any, offsets: Any, a: Any, b: Any) -> None:
        tl.store(a, tl.randint(tl.load(seeds), tl.load(offsets)))
        tl.store(b, tl.randint(-7, tl.load(offsets)))

    got = ks.run(ks.trace(kernel, np.array([-7], dtype=np.int32), offset, ks.hbm((4,), "u32"), ks.hbm((4,), "u32")))
    np.testing.assert_array_equal(got["a"], got["b"])
    np.testing.assert_array_equal(got["a"], random_words(np.uint64(2**64 - 7), offset)[0])
    assert len(np.unique(got["a"])) == 4


def test_floats_are_distributed_as_they_say() -> None:
    """Mean and deviation of a hundred thousand; uniform ones stay below 1."""
    words = random_words(np.uint64(3), np.arange(100_000, dtype=np.int32))
    u0, u1, *_ = map(uniform, words)
    n0, n1 = normal_pair(u0, u1)
    assert 0 <= u0.min() < 1e-4 and 1 - 1e-4 < u0.max() < 1 and u0.dtype == np.float32
    np.testing.assert_allclose([u0.mean(), u0.var()], [1 / 2, 1 / 12], atol=0.003)
    for normal in (n0, n1):
        np.testing.assert_allclose([normal.mean(), normal.std()], [0, 1], atol=0.01)
    assert abs(np.corrcoef(n0, n1)[0, 1]) < 0.01
    wide = philox(np.uint64(3), *([np.arange(1000, dtype=np.uint64)] * 4))[0]
    assert uniform(wide).dtype == np.float32 and uniform(wide).min() >= 0 and uniform(wide).max() < 1


@pytest.mark.parametrize(("seed", "bits"), [(2**64 - 1, 2**64 - 1), (-(2**63), 2**63), (0, 0), (-1, 2**64 - 1)])
def test_a_seed_has_64_bits(seed: int, bits: int) -> None:
    """The largest and the least there are give what their bits give."""

    def kernel(o: Any) -> None:
        tl.store(o, tl.randint(seed, tl.arange(0, 4)))

    (words,) = ks.run(ks.trace(kernel, ks.hbm((4,), "u32"))).values()
    np.testing.assert_array_equal(words, random_words(np.uint64(bits), np.arange(4, dtype=np.int32))[0])


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda h: tl.rand(1.5, tl.arange(0, 4)), ks.ArgumentError, "seed 1.5"),
        (lambda h: tl.rand(2**64, tl.arange(0, 4)), ks.ArgumentError, "64 bits"),
        (lambda h: tl.rand(-(2**63) - 1, tl.arange(0, 4)), ks.ArgumentError, "64 bits"),
        (lambda h: tl.rand(True, tl.arange(0, 4)), ks.ArgumentError, "seed True"),
        (lambda h: tl.rand(1, 4), ks.ArgumentError, "rand"),
        (lambda h: tl.rand(1, h), ks.DTypeError, "offset of f16"),
        (lambda h: tl.rand(h, tl.arange(0, 4)), ks.DTypeError, "seed of f16"),
        (lambda h: tl.randint(1, tl.arange(0, 4), -1), ks.ArgumentError, "-1 rounds"),
    ],
)
def test_what_gives_no_numbers_is_told(call: Any, error: Any, says: str) -> None:
    """At the line that asks for them."""

    def kernel(x: Any) -> None:
        call(tl.load(x))

    with pytest.raises(error, match=says):
        ks.trace(kernel, ks.hbm((4,), "f16"))
