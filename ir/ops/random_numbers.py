"""Random numbers of a seed and of offsets: the same ones on every machine, in any order of execution, and as Triton
gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtypes import DType, float32, uint32
from ..errors import ArgumentError, DTypeError
from ..layout import Layout, Shape, broadcast_shapes
from .elementwise import TABLE
from .numbers import Array
from .operation import Cost, Family, Kind, Operand, Operation, output_elements
from .philox import normal_pair, random_words, uniform

__all__: list[str] = []

_LARGEST_SEED = 2**64 - 1


def _rule(result: DType) -> Callable[..., tuple[Shape, DType]]:
    def rule(operands: Sequence[Operand], *, rounds: int, words: int) -> tuple[Shape, DType]:
        seed, offset = operands
        for name, given in (("seed", seed), ("offset", offset)):
            if isinstance(given, Layout) and not given.dtype.is_integer:
                raise DTypeError(f"a {name} of {given.dtype}", help=f"it is made of integers: {name}.to(tl.int32)")
        if not isinstance(offset, Layout):
            raise ArgumentError(f"offset {offset!r} is no tile", help="give each element its own: tl.arange(0, 128)")
        if not isinstance(seed, Layout) and (type(seed) is not int or not -(2**63) <= seed <= _LARGEST_SEED):
            raise ArgumentError(f"seed {seed!r}", help="a seed is an integer of at most 64 bits, or a tile of them")
        if rounds < 0:
            raise ArgumentError(f"{rounds} rounds", help="10 is usual; 7 pass the known tests of randomness")
        if words not in (1, 4):
            raise ArgumentError(f"{words} words of each offset", help="it is the first one, or all 4")
        shape = broadcast_shapes(*[o.shape for o in operands if isinstance(o, Layout)])
        return (shape if words == 1 else (4, *shape)), result

    return rule


def _numbers(of_words: Callable[[tuple[Array, ...]], tuple[Array, ...]]) -> Callable[..., Array]:
    def evaluate(
        seed: Any, offset: Array, *, rounds: int, words: int, result: DType, operands: Sequence[Operand]
    ) -> Array:
        key = np.uint64(seed & _LARGEST_SEED) if isinstance(seed, int) else seed
        found = of_words(random_words(key, offset, rounds))
        return found[0] if words == 1 else np.stack(found)

    return evaluate


def _normal(words: tuple[Array, ...]) -> tuple[Array, ...]:
    u0, u1, u2, u3 = map(uniform, words)
    return (*normal_pair(u0, u1), *normal_pair(u2, u3))


for _name, _dtype, _of_words, _doc in (
    ("randint", uint32, lambda words: words, "Random numbers of 32 bits, u32. Example: ``tl.randint(seed, offset)``."),
    (
        "rand",
        float32,
        lambda words: tuple(map(uniform, words)),
        "Random numbers in [0, 1), f32, evenly distributed. Example: ``keep = tl.rand(seed, offset) > 0.1``.",
    ),
    ("randn", float32, _normal, "Random numbers, f32, normally distributed. Example: ``x + tl.randn(seed, offset)``."),
):
    TABLE.add(
        Operation(
            name=_name,
            family=Family.CREATION,
            kind=Kind.ELEMENTWISE,
            cost=Cost.TRANSCENDENTAL,
            log=f"math/{_name}",
            rule=_rule(_dtype),
            evaluate=_numbers(_of_words),
            work=output_elements,
            doc=_doc,
            public=False,
        )
    )
