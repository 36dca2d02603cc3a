"""The language, name by name: numbers equal numpy, and the graph of every program says the same, bit for bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tritonkernels import launched, same_in_turn, tl

import kernscope as ks
from kernscope.ir.launch_facts import FactKind
from kernscope.tracer.triton.language import LIBDEVICE, NAMES, RANDOM, REFUSED

RNG = np.random.default_rng(1)
Array = np.ndarray[Any, Any]


# --- one tile in, one tile out ----------------------------------------------------------------------------------------


def sums(x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    x = tl.load(x_ptr + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(o_ptr + tl.arange(0, N), tl.sum(x, axis=1) + tl.max(x, 0) - tl.min(x, axis=1))


def places(x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    x = tl.load(x_ptr + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :])
    best, where = tl.max(x, 1, return_indices=True)
    tl.store(o_ptr + tl.arange(0, N), best + where + tl.argmin(x, 1) + 100 * tl.argmax(x, 0))


def larger(a, b):  # type: ignore[no-untyped-def]
    return tl.maximum(a, b)


def reduced(x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    x = tl.load(x_ptr + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(o_ptr + tl.arange(0, N), tl.reduce(x, 1, larger))


def added(a, b):  # type: ignore[no-untyped-def]
    return a + b


def scans(x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(o_ptr + at, tl.associative_scan(x, 1, added) - tl.cumsum(x, 1) + tl.cumsum(x, 0, reverse=True))


def sorting(x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(o_ptr + at, tl.sort(x) + tl.flip(tl.sort(x, descending=True)))


def shaped(x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    y = tl.reshape(tl.trans(x), (N * N,))
    a, b = tl.split(tl.reshape(y, (N * N // 2, 2)))
    z = tl.interleave(b, a)
    tl.store(o_ptr + tl.arange(0, N * N), tl.permute(tl.reshape(z, (N, N)), (1, 0)).reshape(N * N))


def catted(x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, N * N // 2)
    x = tl.cat(tl.load(x_ptr + i), tl.load(x_ptr + N * N // 2 + i), can_reorder=True)
    tl.store(o_ptr + tl.arange(0, N * N), x)


def looked_up(x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    index = (tl.arange(0, N)[:, None] + tl.arange(0, N)[None, :]) % N
    tl.store(o_ptr + at, tl.gather(x, index, 1))


def functions(x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, N * N)
    x = tl.load(x_ptr + i)
    y = tl.exp(x) + tl.sqrt(tl.abs(x)) + tl.sigmoid(x) + tl.floor(x) + tl.math.erf(x) - tl.where(x > 0, x, -x)
    tl.store(o_ptr + i, tl.fma(y, 2.0, 1.0) + tl.clamp(x, -1.0, 1.0))


def products(x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    both = tl.dot(x.to(tl.float16), tl.trans(x).to(tl.float16), acc=x)
    tl.store(o_ptr + at, both + tl.dot(x, x, input_precision="ieee"))


def batched(x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.reshape(tl.load(x_ptr + at), (2, N // 2, N))
    y = tl.dot(x, tl.permute(x, (0, 2, 1)))
    tl.store(o_ptr + tl.arange(0, N * N // 2), tl.reshape(y, (N * N // 2,)))


def blocks(x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    x = tl.make_block_ptr(x_ptr, (N - 3, N - 1), (N, 1), (0, 0), (8, 8), (1, 0))
    o = tl.make_tensor_descriptor(o_ptr, [N, N], [N, 1], [8, 8])
    for i in range(0, N, 8):
        tile = tl.load(tl.advance(x, (i, 8)), boundary_check=(0, 1), padding_option="zero")
        o.store([i, 0], tile + 1)
        o.store([i, 8], o.load([i, 0]) * 2)


def bits(x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, N * N)
    x = tl.load(x_ptr + i).to(tl.int32, bitcast=True)
    tl.store(o_ptr + i, ((x >> 3) ^ (x & 0xFF) | 1).to(tl.float32))


def widened(x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    column = tl.sum(tl.load(x_ptr + at), 1)
    acc = tl.zeros([N, N], tl.float32) + 2
    tl.store(o_ptr + at, acc * column[:, None])


def whole(x: Array) -> Array:
    o = np.zeros_like(x)
    for i in range(0, 16, 8):
        tile = np.zeros((8, 8), np.float32)
        rows, cols = min(8, 13 - i), 15 - 8
        tile[:rows, :cols] = x[i : i + rows, 8:15]
        o[i : i + 8, :8], o[i : i + 8, 8:] = tile + 1, (tile + 1) * 2
    return o


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def erf(x: Array) -> Array:
    return np.asarray(ks.run(ks.trace(_erf, x, np.zeros_like(x)))["o"])


@ks.kernel
def _erf(x: Any, o: Any) -> None:
    ks.tl.store(o[:, :], ks.tl.erf(ks.tl.load(x[:, :])))


def _half(x: Array) -> Array:
    return x.astype(np.float16).astype(np.float32)


def _bits(x: Array) -> Array:
    n = x.reshape(-1).view(np.int32)
    return (n >> 3) ^ (n & 0xFF) | 1


CASES: list[tuple[Callable[..., None], Callable[[Array], Array]]] = [
    (sums, lambda x: x.sum(1) + x.max(0) - x.min(1)),
    (places, lambda x: x.max(1) + x.argmax(1) + x.argmin(1) + 100 * x.argmax(0)),
    (reduced, lambda x: x.max(1)),
    (scans, lambda x: np.flip(np.cumsum(np.flip(x, 0), 0), 0)),
    (sorting, lambda x: 2 * np.sort(x, 1)),
    (shaped, lambda x: np.flip(x.T.reshape(-1, 2), 1).reshape(16, 16).T),
    (catted, lambda x: x),
    (looked_up, lambda x: np.take_along_axis(x, (np.arange(16)[:, None] + np.arange(16)) % 16, 1)),
    (
        functions,
        lambda x: (
            (np.exp(x) + np.sqrt(abs(x)) + sigmoid(x) + np.floor(x) + erf(x) - abs(x)) * 2 + 1 + np.clip(x, -1, 1)
        ),
    ),
    (products, lambda x: _half(x) @ _half(x).T + x + x @ x),
    (batched, lambda x: x.reshape(2, 8, 16) @ x.reshape(2, 8, 16).transpose(0, 2, 1)),
    (widened, lambda x: np.broadcast_to(2 * x.sum(1)[:, None], (16, 16))),
    (blocks, whole),
    (bits, _bits),
]


@pytest.mark.parametrize(("kernel", "expected"), CASES, ids=lambda f: getattr(f, "__name__", ""))
def test_a_tile_becomes_what_numpy_makes_of_it(kernel: Any, expected: Callable[[Array], Array]) -> None:
    """Numbers equal numpy's, and what the graph says."""
    x = RNG.standard_normal((16, 16), np.float32)
    out = np.zeros(256, np.float32)
    made = launched(kernel, 1, x, out, N=16)
    wanted = expected(x).reshape(-1)
    np.testing.assert_allclose(out[: wanted.size], wanted, rtol=1e-4, atol=1e-4)
    same_in_turn(made, {"o_ptr": out})


# --- memory -----------------------------------------------------------------------------------------------------------


def embedding(index_ptr, table_ptr, o_ptr, D: tl.constexpr, ROWS: tl.constexpr):  # type: ignore[no-untyped-def]
    pid = tl.program_id(0)
    rows = pid * ROWS + tl.arange(0, ROWS)
    index = tl.load(index_ptr + rows)
    cols = tl.arange(0, D)
    x = tl.load(table_ptr + index[:, None] * D + cols[None, :])
    tl.store(o_ptr + rows[:, None] * D + cols[None, :], x)


def test_rows_are_gathered_by_loaded_indices() -> None:
    """The addresses of a load are data: rows of an index, and the load waits for what it read."""
    table, index = RNG.standard_normal((20, 8), np.float32), RNG.integers(0, 20, 16).astype(np.int64)
    out = np.zeros((16, 8), np.float32)
    made = launched(embedding, 4, index, table, out, D=8, ROWS=4)
    assert np.array_equal(out, table[index])
    graph = made.graph(2)
    (gather,) = [node for node in graph if "index" in node.attributes]
    assert gather.attributes["index"].is_rows
    assert any(edge.source == 0 for edge in gather.edges_in)
    same_in_turn(made, {"o_ptr": out})


def counted(x_ptr, count_ptr, ticket_ptr, n, N: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    old = tl.atomic_add(count_ptr + x, 1, mask=i < n)
    tl.store(ticket_ptr + i, old, mask=i < n)
    tl.atomic_max(count_ptr + 8, tl.max(x, 0))


def test_atomics_take_turns_in_the_order_of_programs() -> None:
    """Elements that meet in one place find what the one before left; what is found equals a loop."""
    x = RNG.integers(0, 8, 50).astype(np.int32)
    count, ticket = np.zeros(9, np.int32), np.zeros(50, np.int32)
    made = launched(counted, 4, x, count, ticket, 50, N=16)
    seen: dict[int, int] = {}
    wanted = [seen.setdefault(v, -1) for v in ()]
    for value in x.tolist():
        wanted.append(seen.get(value, 0))
        seen[value] = wanted[-1] + 1
    assert count[:8].tolist() == np.bincount(x, minlength=8).tolist()
    assert count[8] == x.max()
    assert ticket.tolist() == wanted
    same_in_turn(made, {"count_ptr": count, "ticket_ptr": ticket})


def locked(lock_ptr, sum_ptr, x_ptr):  # type: ignore[no-untyped-def]
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(sum_ptr, tl.load(sum_ptr) + tl.load(x_ptr + tl.program_id(0)))
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


def test_locks_let_programs_through_one_by_one() -> None:
    """A lock is free when a program asks for it, and what is behind it is added up."""
    lock, total, x = np.zeros(1, np.int32), np.zeros(1, np.float32), RNG.standard_normal(5, np.float32)
    made = launched(locked, 5, lock, total, x)
    np.testing.assert_allclose(total[0], x.sum(), rtol=1e-6)
    assert lock[0] == 0
    assert made.races() == ()
    same_in_turn(made, {"lock_ptr": lock, "sum_ptr": total})


def swapped(x_ptr, i_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.load(i_ptr + tl.arange(0, N))
    tl.store(o_ptr + tl.arange(0, N), tl.atomic_cas(x_ptr + at, tl.zeros((N,), tl.int32), tl.arange(0, N) + 1))


def test_swaps_in_one_place_take_turns() -> None:
    """Of several elements that expect the same, the first one swaps, and the others find what it left."""
    x, at, out = np.zeros(4, np.int32), np.array([2, 0, 2, 2], np.int32), np.zeros(4, np.int32)
    made = launched(swapped, 1, x, at, out, N=4)
    assert x.tolist() == [2, 0, 1, 0]
    assert out.tolist() == [0, 0, 1, 1]
    same_in_turn(made, {"x_ptr": x, "o_ptr": out})


# --- control ----------------------------------------------------------------------------------------------------------


def branched(flag_ptr, x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    x = tl.load(x_ptr + i)
    if tl.load(flag_ptr + pid) > 0 and pid != 3:
        x = x * 2
    for _ in range(pid % 2):
        x += 1
    tl.store(o_ptr + i, x)


def test_lanes_that_decide_otherwise_are_divided() -> None:
    """Branches and trip counts that differ make traces of their own; what was stored meanwhile is taken back; what a
    branch read is waited for."""
    flag, x = np.array([1, 0, 1, 1, 0, 1], np.int32), RNG.standard_normal(48, np.float32)
    out = np.zeros_like(x)
    made = launched(branched, 6, flag, x, out, N=8)
    doubled = np.repeat((flag > 0) & (np.arange(6) != 3), 8)
    assert np.array_equal(out, np.where(doubled, x * 2, x) + np.repeat(np.arange(6) % 2, 8).astype(np.float32))
    assert sorted(p for trace in made.traces for p in trace.programs.tolist()) == list(range(6))
    assert len(made.traces) == 4
    assert made.splits >= 2
    graph = made.graph(0)
    (decision,) = [node.id for node in graph if node.op == "decide"]
    controlled = {e.target for node in graph for e in node.edges_in if e.reason.label == "control"}
    assert controlled
    assert min(controlled) > decision
    same_in_turn(made, {"o_ptr": out})


def grid_of_three(o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    tl.store(o_ptr + at * N + tl.arange(0, N), at.to(tl.float32) + tl.zeros((N,), tl.float32))


def test_a_budget_divides_a_launch_and_changes_nothing() -> None:
    """Programs in chunks, or all at once: the same memory, the same traces; axis 0 of the grid runs fastest."""
    grid = (7, 5, 6)
    out, again = (np.zeros((210, 4), np.float32) for _ in range(2))
    made = launched(grid_of_three, grid, out, N=4)
    other = launched(grid_of_three, grid, again, N=4, options={"budget": 4096})
    assert np.array_equal(out, np.arange(210, dtype=np.float32)[:, None] + np.zeros(4, np.float32))
    assert np.array_equal(out, again)
    assert len(made.traces) == len(other.traces) == 1
    assert made.program_ids(209) == (6, 4, 5)
    assert str(made.graph(33)) == str(other.graph(33))


# --- integers, random numbers -----------------------------------------------------------------------------------------


def integers(a_ptr, b_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, N)
    a, b = tl.load(a_ptr + i), tl.load(b_ptr + i)
    tl.store(o_ptr + i, a // b)
    tl.store(o_ptr + N + i, a % b)
    tl.store(o_ptr + 2 * N + i, a * b)


def test_integers_divide_as_in_c_and_wrap_around() -> None:
    """Toward zero, with the sign of the dividend; products modulo 2**32."""
    a = RNG.integers(-(2**31), 2**31, 64).astype(np.int32)
    b = RNG.integers(1, 2**20, 64).astype(np.int32) * RNG.choice([-1, 1], 64).astype(np.int32)
    out = np.zeros(192, np.int32)
    made = launched(integers, 1, a, b, out, N=64)
    exact = [int(np.fix(x / y)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert out[:64].tolist() == exact
    assert out[64:128].tolist() == [x - q * y for x, q, y in zip(a.tolist(), exact, b.tolist(), strict=True)]
    with np.errstate(over="ignore"):
        assert np.array_equal(out[128:], a * b)
    same_in_turn(made, {"o_ptr": out})


def randoms(o_ptr, seed, N: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * N + tl.arange(0, N)
    a, b, c, d = tl.rand4x(seed, i)
    tl.store(o_ptr + i, tl.rand(seed, i) - a + b - b + (c - c) + (d - d) + tl.randint(seed, i).to(tl.float32) * 0)


def test_random_numbers_are_those_of_the_core() -> None:
    """The same bits as `kernscope.tl`'s, which are Triton's."""
    out = np.zeros(64, np.float32)
    made = launched(randoms, 2, out, 1234, N=32)
    assert np.all(np.abs(out) < 1e-6)
    same_in_turn(made, {"o_ptr": out})


tl.rand4x, tl.rand, tl.randint = RANDOM["rand4x"], RANDOM["rand"], RANDOM["randint"]


# --- facts ------------------------------------------------------------------------------------------------------------


def faulty(x_ptr, o_ptr, n, big, N: tl.constexpr):  # type: ignore[no-untyped-def]
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    x = tl.load(x_ptr + i)
    y = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i + big * 4 - big * 4, x + tl.sum(y, 0), mask=i < n)


def test_what_a_rule_would_speak_of_is_a_fact() -> None:
    """An access outside, an int32 that wraps on its way to an address, undefined elements that are reduced: with the
    programs, and the line."""
    x, out = np.zeros(20, np.float32), np.zeros(20, np.float32)
    made = launched(faulty, 3, x, out, 20, 2**30, N=8)
    found = {fact.kind: fact for fact in made.facts}
    assert set(found) == {FactKind.OUTSIDE, FactKind.WRAPPED, FactKind.UNDEFINED}
    assert found[FactKind.OUTSIDE].programs.tolist() == [2]
    assert found[FactKind.OUTSIDE].elements.tolist() == [23]
    assert found[FactKind.UNDEFINED].programs.tolist() == [2]
    places = {kind: made.location(fact.stack) for kind, fact in found.items()}
    code = faulty.__code__.co_firstlineno
    assert {kind: place.line - code for kind, place in places.items() if place} == {
        FactKind.OUTSIDE: 3,
        FactKind.WRAPPED: 5,
        FactKind.UNDEFINED: 5,
    }
    assert made.graph(2).bounds_faults


def failing(x_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(x_ptr + tl.arange(0, 8), 1.0)
    tl.arange(0, N)


def test_what_the_compiler_refuses_is_told_with_its_line_and_leaves_memory_alone() -> None:
    """A size that is no power of two; what was stored before is taken back."""
    x = np.zeros(8, np.float32)
    with pytest.raises(ks.TritonCompileError, match="6 is no power of two") as raised:
        launched(failing, 1, x, N=6)
    assert f":{failing.__code__.co_firstlineno + 2}" in str(raised.value)
    assert not x.any()


def test_every_name_runs_or_is_refused_with_a_reason() -> None:
    """No name is both, but for types that can be named only."""
    both = set(NAMES) & set(REFUSED)
    assert both == {"float8e4b15", "float8e4b8", "float8e5b16"}
    assert all(REFUSED.values())
    assert all(callable(f) for f in LIBDEVICE.values())
