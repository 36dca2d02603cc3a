"""Random numbers, Triton's bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir import dtypes
from ....ir.layout import Layout
from ..constexpr import bare
from ..recording.tape import PerLane
from ..values.arithmetic import cast, elementwise, evaluate, roots_of
from ..values.value import Running, Value, constant, lift, under_rank

__all__ = ["RANDOM"]


def _numbers(name: str, words: int, result: type) -> Callable[..., Any]:
    def call(seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
        tracing, key, at = Running.tracing, lift(seed), lift(offset)
        stack, rounds = tracing.here(), int(bare(n_rounds))
        static = (("rounds", rounds), ("words", words))
        arrays = [under_rank(key.array, len(at.shape)), at.array]
        found = evaluate(name, arrays, np.dtype(result), rounds=rounds, words=words)
        layout = Layout.dense(at.shape if words == 1 else (4, *at.shape), dtypes.of(np.dtype(result)))
        column = key.array.reshape(len(key.array), -1)[:, 0]
        given = PerLane(column) if key.is_known and key.is_splat else tracing.handle(key)
        handle = tracing.step(name, (given, tracing.handle(at)), static, stack, layout)
        roots = roots_of([key, at])
        if words == 1:
            made = Value([found], at.shape, roots=roots, stack=stack)
            made.handle = handle
            return made
        return tuple(_word(found, handle, k, at.shape, stack) for k in range(4))

    call.__name__, call.__doc__ = name if words == 1 else f"{name}4x", f"``tl.{name}{'4x' * (words > 1)}``."
    return call


def _word(found: Any, handle: Any, k: int, shape: tuple[int, ...], stack: int) -> Value:
    made = Value([np.ascontiguousarray(found[k])], shape, stack=stack)
    layout = Layout.dense(shape, handle.layout.dtype)
    made.handle = handle.at(k * layout.size, layout)
    return made


def philox(seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: Any = 10) -> tuple[Value, Value, Value, Value]:
    """``tl.philox``: four random words of a counter (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
    2011)."""
    word, wide = np.dtype(np.uint32), np.dtype(np.uint64)
    key = cast(lift(seed), wide)
    k0 = cast(elementwise("and", key, 0xFFFFFFFF), word)
    k1 = cast(elementwise("shr", key, 32), word)
    c = [cast(lift(x), word) for x in (c0, c1, c2, c3)]
    for _ in range(int(bare(n_rounds))):
        a, b = (constant(number, word) for number in (0xD2511F53, 0xCD9E8D57))
        high_b, high_a = elementwise("mulhi", b, c[2]), elementwise("mulhi", a, c[0])
        c = [
            elementwise("xor", elementwise("xor", high_b, c[1]), k0),
            elementwise("mul", b, c[2]),
            elementwise("xor", elementwise("xor", high_a, c[3]), k1),
            elementwise("mul", a, c[0]),
        ]
        k0 = elementwise("add", k0, constant(0x9E3779B9, word))
        k1 = elementwise("add", k1, constant(0xBB67AE85, word))
    return c[0], c[1], c[2], c[3]


def _philox_of_key(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any, n_rounds: Any = 10) -> Any:
    high, low = (cast(lift(k), np.dtype(np.uint64)) for k in (k1, k0))
    return philox(elementwise("or", elementwise("shl", high, 32), low), c0, c1, c2, c3, n_rounds)


#: By name.
RANDOM: dict[str, Any] = {
    "rand": _numbers("rand", 1, np.float32),
    "randn": _numbers("randn", 1, np.float32),
    "randint": _numbers("randint", 1, np.uint32),
    "rand4x": _numbers("rand", 4, np.float32),
    "randn4x": _numbers("randn", 4, np.float32),
    "randint4x": _numbers("randint", 4, np.uint32),
    "philox": philox,
    "philox_impl": _philox_of_key,
}
