"""Kernels whose findings propose a change of the source, and what their authors meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

X = np.arange(1, 1 + 32 * 8, dtype=np.float32).reshape(32, 8) % 17 / 4


@attrs.frozen
class Case:
    """A kernel of ``x`` (32, 8) and ``o``, given by its body or as a whole module text (where it has an ``@``); the
    code whose fix is followed; and what ``o`` is meant to be, made from ``x``."""

    name: str
    code: str
    text: str
    meant: Callable[[np.ndarray[Any, Any]], Any]
    shape: tuple[int, ...] = (8,)
    dtype: str = "f32"
    #: What may come or stay: a second finding of another kind, or one that speaks of shares of a time that is less now.
    others: tuple[str, ...] = ()


def total(x: Any) -> Any:
    return x.sum(axis=0)


def rows_max(x: Any) -> Any:
    return x.reshape(4, 8, 8).max(axis=0)


def tanh(x: Any) -> Any:
    for _ in range(8):
        x = np.tanh(x)
    return x


def carried(x: Any) -> Any:
    acc = np.maximum(np.zeros_like(x[0]), x[0])
    for j in range(1, 8):
        acc = np.maximum(acc + x[j - 1], x[j])
    return acc


def halved(x: Any) -> Any:
    rows, row = [], x[0]
    for _ in range(8):
        row = np.tanh(row * np.float32(0.5))
        rows.append(row)
    return np.stack(rows)


KEEPING = [
    Case("augmented", "KS201", """
acc = tl.zeros((8,), tl.float32)
for j in range(32):
    with tl.scratch_scope():
        acc += tl.load(x[j, :])
tl.store(o[:], acc)
""", total),
    Case("difference of a sum, in parentheses", "KS201", """
acc = tl.zeros((8,), tl.float32)
for j in range(16):
    with tl.scratch_scope():
        acc -= tl.load(x[j, :]) + tl.load(x[j + 16, :])
tl.store(o[:], acc)
""", lambda x: -total(x)),
    Case("plain assignment over two lines", "KS201", """
acc = tl.zeros((8,), tl.float32)
for j in range(32):
    with tl.scratch_scope():
        acc = (acc
               + tl.load(x[j, :]))  # the sum so far
tl.store(o[:], acc)
""", total),
    Case("one-line with", "KS201", """
acc = tl.zeros((8,), tl.float32)
for j in range(32):
    with tl.scratch_scope(): acc += tl.load(x[j, :])
tl.store(o[:], acc)
""", total),
    Case("nested loops, each with a scope", "KS201", """
acc = tl.zeros((8,), tl.float32)
for j in range(4):
    with tl.scratch_scope("outer"):
        for i in range(8):
            with tl.scratch_scope("inner"):
                acc += tl.load(x[j * 8 + i, :])
tl.store(o[:], acc)
""", total),
    Case("under another name", "KS201", """
m = tl.full((8, 8), float("-inf"), tl.float32)
for j in range(4):
    with tl.scratch_scope():
        m_new = tl.maximum(m, tl.load(x[j * 8 : j * 8 + 8, :]))
        m = m_new
tl.store(o[:, :], m)
""", rows_max, (8, 8)),
    Case("online softmax's two carried values", "KS201", """
m = tl.full((8,), -100.0, tl.float32)
l = tl.zeros((8,), tl.float32)
for j in range(32):
    with tl.scratch_scope():
        s = tl.load(x[j, :])
        m_new = tl.maximum(m, s)
        alpha = tl.exp(m - m_new)
        l = l * alpha + tl.exp(s - m_new)
        m = m_new
tl.store(o[:], l)
""", lambda x: np.exp(x - x.max(axis=0)).sum(axis=0)),
    Case("a result that is read after its scope", "KS201", """
with tl.scratch_scope():
    a = tl.load(x[0, :])
    s = tl.exp(a)
b = tl.load(x[1, :])
tl.store(o[:], s + b)
""", lambda x: np.exp(x[0]) + x[1]),
    Case("a load that is read after its scope", "KS201", """
with tl.scratch_scope():
    a = tl.load(x[0, :])
b = tl.load(x[1, :])
tl.store(o[:], a * b)
""", lambda x: x[0] * x[1]),
    Case("a view of it", "KS201", """
with tl.scratch_scope():
    a = tl.load(x[0:2, :])
    row = a[1, :]
b = tl.load(x[2, :])
tl.store(o[:], row * b)
""", lambda x: x[1] * x[2]),
    Case("in each iteration", "KS201", """
for j in range(32):
    with tl.scratch_scope():
        a = tl.exp(tl.load(x[j, :]))
    with tl.scratch_scope():
        tl.store(o[j, :], a + tl.load(x[j, :]))
""", lambda x: np.exp(x) + x, (32, 8)),
    Case("the name is given twice", "KS201", """
with tl.scratch_scope():
    s = tl.load(x[0, :])
    s = tl.exp(s)
b = tl.load(x[1, :])
tl.store(o[:], s + b)
""", lambda x: np.exp(x[0]) + x[1]),
    Case("it escapes two scopes", "KS201", """
with tl.scratch_scope():
    with tl.scratch_scope():
        s = tl.exp(tl.load(x[0, :]))
    t = tl.load(x[2, :])
    tl.store(o[:], t)
b = tl.load(x[1, :])
tl.store(o[:], s + b)
""", lambda x: np.exp(x[0]) + x[1]),
    Case("a list of all", "KS201", """
tiles = []
for j in range(4):
    with tl.scratch_scope():
        t = tl.load(x[j, :])
        tiles.append(t)
a = tiles[0] + tiles[1]
b = tiles[2] + tiles[3]
tl.store(o[:], a + b)
""", lambda x: x[:4].sum(axis=0)),
    Case("an empty handle", "KS201", """
with tl.scratch_scope():
    a = tl.empty((8,), tl.float32)
    tl.load(x[0, :], out=a)
b = tl.load(x[1, :])
tl.store(o[:], a + b)
""", lambda x: x[0] + x[1]),
    Case("made by a helper", "KS201", """
from contextlib import nullcontext

def squared(row):
    h = tl.load(row)
    return h * h

@ks.kernel
def kernel(x, o):
    with tl.scratch_scope():
        s = squared(x[0, :])
    b = tl.load(x[1, :])
    tl.store(o[:], s + b)
""", lambda x: x[0] ** 2 + x[1]),
    Case("within a helper", "KS201", """
def column(x, o, count):
    acc = tl.zeros((8,), tl.float32)
    for j in range(count):
        with tl.scratch_scope():
            acc += tl.load(x[j, :])
    tl.store(o[:], acc)

@ks.kernel
def kernel(x, o):
    column(x, o, 32)
""", total),
    Case("within a decorated helper", "KS201", """
import functools

def noted(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)
    return wrapper

@noted
def column(x, o):
    acc = tl.zeros((8,), tl.float32)
    for j in range(32):
        with tl.scratch_scope():
            acc += tl.load(x[j, :])
    tl.store(o[:], acc)

@ks.kernel
def kernel(x, o):
    column(x, o)
""", total),
    Case("by the package's name", "KS201", """
import kernscope
del tl

@kernscope.kernel
def kernel(x, o):
    tl = kernscope.tl
    acc = tl.zeros((8,), tl.float32)
    for j in range(32):
        with tl.scratch_scope():
            acc += tl.load(x[j, :])
    tl.store(o[:], acc)
""", total),
    Case("loaded into", "KS202", """
with tl.scratch_scope():
    buffer = tl.load(x[0, :])
    tl.store(o[0, :], buffer)
tl.load(x[1, :], out=buffer)
tl.store(o[1, :], buffer)
""", lambda x: x[:2], (2, 8), others=("KS201",)),
    Case("copied into, never read", "KS202", """
with tl.scratch_scope():
    buffer = tl.load(x[0, :])
    tl.store(o[:], buffer)
tl.load(x[1, :], out=buffer)
""", lambda x: x[0], (8,)),
    Case("accumulated into", "KS201", """
with tl.scratch_scope():
    h = tl.zeros((8, 8), tl.float32)
a = tl.load(x[0:8, :])
tl.dot(a, a, acc=h)
tl.store(o[:, :], h)
""", lambda x: x[:8] @ x[:8], (8, 8)),
    Case("assigned to a name that nothing had before", "KS201", """
with tl.scratch_scope():
    s = tl.exp(tl.load(x[0, :]))
    kept = s
b = tl.load(x[1, :])
tl.store(o[:], kept + b)
""", lambda x: np.exp(x[0]) + x[1]),
    Case("under another name, read by its own as well", "KS201", """
m = tl.load(x[0, :])
for j in range(1, 4):
    with tl.scratch_scope():
        old = m
        m_new = tl.maximum(old, tl.load(x[j, :]))
        m = m_new
b = tl.load(x[5, :])
tl.store(o[:], m_new + b)
""", lambda x: x[:4].max(axis=0) + x[5]),
    Case("the name meant another handle before", "KS201", """
m = tl.load(x[0, :])
first = m
m = tl.load(x[1, :])
for j in range(2, 5):
    with tl.scratch_scope():
        m = tl.maximum(m, tl.load(x[j, :]))
tl.store(o[:], m + first)
""", lambda x: x[1:5].max(axis=0) + x[0]),
    Case("the name meant another handle before, augmented", "KS201", """
m = tl.load(x[0, :])
first = m
m = tl.load(x[1, :])
for j in range(2, 5):
    with tl.scratch_scope():
        m += tl.load(x[j, :])
tl.store(o[:], m + first)
""", lambda x: x[1:5].sum(axis=0) + x[0]),
    Case("the new handle's name is taken", "KS201", """
s_kept = 1.0
with tl.scratch_scope():
    s = tl.load(x[0, :])
    s = tl.exp(s)
b = tl.load(x[1, :])
tl.store(o[:], s + b * s_kept)
""", lambda x: np.exp(x[0]) + x[1]),
]  # fmt: skip

FILLING = [
    Case("a product's accumulator", "KS204", """
acc = tl.empty((8, 8), tl.float32)
for j in range(4):
    with tl.scratch_scope():
        a = tl.load(x[j * 8 : j * 8 + 8, :])
        tl.dot(a, a, acc=acc)
tl.store(o[:, :], acc)
""", lambda x: sum(t @ t for t in x.reshape(4, 8, 8)), (8, 8)),
    Case("a rest that nothing writes", "KS204", """
both = tl.empty(
    (16, 8), tl.float32)
tl.load(x[0:8, :], out=both[0:8, :])
tl.store(o[:, :], both)
""", lambda x: np.concatenate([x[:8], np.zeros((8, 8))]), (16, 8)),
    Case("a sum that was never begun", "KS204", """
acc = tl.empty((8,), tl.float32)
for j in range(32):
    with tl.scratch_scope():
        tl.copy_to(acc, acc + tl.load(x[j, :]))
tl.store(o[:], acc)
""", total),
]  # fmt: skip

SCOPING = [
    Case("read by the next iteration above the line that makes it", "KS103", """
acc = tl.zeros((8,), tl.float32)
cur = tl.load(x[0, :])
for j in range(1, 8):
    tl.copy_to(acc, acc + cur)
    cur = tl.load(x[j, :])
    tl.copy_to(acc, tl.maximum(acc, cur))
tl.store(o[:], acc)
""", carried),
    Case("read by the next iteration, but not by the first", "KS103", """
acc = tl.zeros((8,), tl.float32)
cur = acc
for j in range(8):
    if j:
        tl.copy_to(acc, acc + cur)
    cur = tl.load(x[j, :])
    tl.copy_to(acc, tl.maximum(acc, cur))
tl.store(o[:], acc)
""", carried),
    Case("read by its own statement in the next iteration", "KS103", """
cur = tl.load(x[0, :])
for j in range(8):
    cur = tl.tanh(cur * 0.5)
    tl.store(o[j, :], cur)
""", halved, shape=(8, 8)),
    Case("independent iterations", "KS103", """
for j in range(32):
    tile = tl.load(x[j, :])
    tl.store(o[j, :], tl.exp(tile) * 2.0)
""", lambda x: np.exp(x) * 2, (32, 8)),
    Case("one line", "KS103", """
for j in range(32): tl.store(o[j, :], tl.load(x[j, :]) * 2.0)
""", lambda x: x * 2, (32, 8)),
    Case("two statements on the loop's line", "KS103", """
for j in range(32): t = tl.load(x[j, :]); tl.store(o[j, :], t * 2.0)
""", lambda x: x * 2, (32, 8)),
    Case("a carried sum", "KS103", """
acc = tl.zeros((8,), tl.float32)
for j in range(32):
    acc = acc + tl.load(x[j, :])
tl.store(o[:], acc)
""", total),
    Case("a carried maximum under another name", "KS103", """
m = tl.load(x[0, :])
for j in range(1, 32):
    row = tl.load(x[j, :]) * 1.0
    m_new = tl.maximum(m, row)
    m = m_new
tl.store(o[:], m)
""", lambda x: x.max(axis=0)),
    Case("the last iteration's result", "KS103", """
for j in range(32):
    row = tl.load(x[j, :])
    last = tl.exp(row) + row
tl.store(o[:], last)
""", lambda x: np.exp(x[31]) + x[31]),
    Case("nested loops", "KS103", """
for j in range(4):
    row = tl.load(x[j, :])
    for i in range(8):
        tl.store(o[j * 8 + i, :], tl.exp(tl.load(x[j * 8 + i, :])) + row)
""", lambda x: np.exp(x) + np.repeat(x[:4], 8, axis=0), (32, 8)),
    Case("nested loops, the inner on one line", "KS103", """
for j in range(4):
    row = tl.load(x[j, :])
    for i in range(8): tl.store(o[j * 8 + i, :], tl.exp(tl.load(x[j * 8 + i, :])) + row)
""", lambda x: np.exp(x) + np.repeat(x[:4], 8, axis=0), (32, 8)),
    Case("a loop of one iteration inside", "KS103", """
for j in range(32):
    for b in range(1):
        row = tl.load(x[j, :]) * 2.0
    tl.store(o[j, :], row)
""", lambda x: x * 2, (32, 8)),
    Case("what a comprehension goes over, made once before it", "KS103", """
for j in range(8):
    [tl.store(o[:], h) for h in (tl.load(x[j, :]),)]
""", lambda x: x[7]),
    Case("a helper in a loop", "KS103", """
def step(source, target):
    tl.store(target, tl.exp(tl.load(source)))

@ks.kernel
def kernel(x, o):
    for j in range(32):
        step(x[j, :], o[j, :])
""", lambda x: np.exp(x), (32, 8)),
    Case("a helper made in another loop", "KS103", """
for b in range(1):
    with tl.scratch_scope():
        def twice(h):
            return h + h
        t = tl.load(x[0, :])
        for _ in range(10):
            t = twice(t) - t
        tl.store(o[:], t)
""", lambda x: x[0]),
    Case("a while loop with a text in its body", "KS103", '''
@ks.kernel
def kernel(x, o):
    j = 0
    while j < 32:
        note = """
  a text of its own
"""
        assert note == "\\n  a text of its own\\n"
        tl.store(o[j, :], tl.load(x[j, :]) + 1.0)
        j += 1
''', lambda x: x + 1, (32, 8)),
    Case("two steps", "KS104", """
with tl.scratch_scope():
    left = tl.load(x[0:16, :])
    tl.store(o[0:16, :], tl.exp(left))
    right = tl.load(x[16:32, :])
    tl.store(o[16:32, :], tl.exp(right))
""", lambda x: np.exp(x), (32, 8)),
    Case("two loops in a scope", "KS104", """
with tl.scratch_scope("step"):
    for j in range(2):
        tl.store(o[j * 8 : j * 8 + 8, :], tl.load(x[j * 8 : j * 8 + 8, :]))
    # the other half
    for j in range(2, 4):
        tl.store(o[j * 8 : j * 8 + 8, :], tl.load(x[j * 8 : j * 8 + 8, :]))
""", lambda x: x, (32, 8)),
]  # fmt: skip

#: 128 KiB a row: eight fit.
OVERFLOW = [
    Case("independent iterations", "KS101", """
for j in range(16):
    big = tl.broadcast_to(tl.load(x[j, 0:1]), (32768,)) * 1.0
    tl.store(o[j : j + 1], big[0:1])
""", lambda x: x[:16, 0], (16,)),
    Case("a loop that runs again and again, each time from where it began", "KS101", """
for i in range(3):
    with tl.scratch_scope():
        acc = tl.zeros((32768,), tl.float32)
        for j in range(8):
            acc = acc + tl.broadcast_to(tl.load(x[i * 8 + j, 0:1]), (32768,))
        tl.store(o[i : i + 1], acc[0:1])
""", lambda x: x[:24, 0].reshape(3, 8).sum(axis=1), (3,)),
    Case("a carried sum", "KS101", """
acc = tl.zeros((32768,), tl.float32)
for j in range(16):
    acc = acc + tl.broadcast_to(tl.load(x[j, 0:1]), (32768,))
tl.store(o[:], acc[0:1])
""", lambda x: x[:16, :1].sum(axis=0), (1,)),
]  # fmt: skip

#: Sums of f16 tiles, whose author meant the f32 sum, rounded once.
WIDENING = [
    Case("copied over", "KS601", """
acc = tl.zeros((8,), tl.float16)
for j in range(32):
    with tl.scratch_scope():
        tl.copy_to(acc, acc + tl.load(x[j, :]))
tl.store(o[:], acc)
""", lambda x: total(x.astype(np.float32)).astype(np.float16), dtype="f16"),
    Case("in a nested loop, used twice", "KS601", """
acc = tl.full((8,), 0.0, dtype="f16")
for j in range(4):
    for i in range(8):
        with tl.scratch_scope():
            row = tl.load(x[j * 8 + i, :])
            tl.copy_to(acc, acc + row)
tl.store(o[:], acc * acc + acc)
""", lambda x: total(x.astype(np.float32)).astype(np.float16) ** 2 + total(x).astype(np.float16), dtype="f16"),
    Case("a product", "KS601", """
acc = tl.zeros((8, 8), tl.float16)
for j in range(4):
    with tl.scratch_scope():
        a = tl.load(x[j * 8 : j * 8 + 8, :])
        tl.dot(a, a, acc=acc)
tl.store(o[:, :], acc)
""", lambda x: sum(t @ t for t in x.astype(np.float32).reshape(4, 8, 8)).astype(np.float16), (8, 8), dtype="f16"),
    Case("used as a view, negated, by a helper and by a method", "KS601", """
def halved(h):
    return h / 2.0

@ks.kernel
def kernel(x, o):
    acc = tl.zeros((1, 8), tl.float16)
    for j in range(32):
        with tl.scratch_scope():
            tl.copy_to(acc, acc + tl.load(x[j : j + 1, :]))
    tl.store(o[:], halved(acc[0, :]) + halved(-acc[0]) + acc.to(tl.float16)[0])
""", lambda x: total(x.astype(np.float32)).astype(np.float16), dtype="f16"),
    Case("added to by a helper", "KS601", """
def add(acc, row):
    tl.copy_to(acc, acc + row)

@ks.kernel
def kernel(x, o):
    acc = tl.zeros((8,), tl.float16)
    for j in range(32):
        with tl.scratch_scope():
            add(acc, tl.load(x[j, :]))
    tl.store(o[:], acc)
""", lambda x: total(x.astype(np.float32)).astype(np.float16), dtype="f16"),
]  # fmt: skip

LINES = [
    Case("a scope that is never entered", "KS206", """
tl.scratch_scope()
tl.store(o[:], tl.load(x[0, :]))
""", lambda x: x[0]),
    Case("a scope that is never entered, in a loop", "KS206", """
for j in range(4):
    tl.scratch_scope("step")  # not entered
    with tl.scratch_scope():
        tl.store(o[j, :], tl.load(x[j, :]))
""", lambda x: x[:4], (4, 8)),
    Case("a load that nobody reads", "KS301", """
with tl.scratch_scope():
    a = tl.load(x[0, :])
    b = tl.load(x[1, :])
    tl.store(o[:], a)
""", lambda x: x[0]),
    Case("a load that nobody reads, alone in its scope", "KS301", """
tl.store(o[:], tl.load(x[0, :]))
for j in range(4):
    with tl.scratch_scope():
        tl.load(x[j, :])
""", lambda x: x[0]),
    Case("a load behind a semicolon", "KS301", """
with tl.scratch_scope():
    a = tl.load(x[0, :]); b = tl.load(x[1, :])
    tl.store(o[:], a)
""", lambda x: x[0]),
    Case("a result that nobody reads", "KS302", """
a = tl.load(x[0, :])
shifted = (
    a + 1.0
)  # not used
tl.store(o[:], a)
""", lambda x: x[0]),
    Case("an empty handle that nobody uses", "KS302", """
a = tl.load(x[0, :])
b = tl.empty((8,), tl.float32)
tl.store(o[:], a)
""", lambda x: x[0]),
    Case("a result within a loop", "KS302", """
for j in range(4):
    with tl.scratch_scope():
        a = tl.load(x[j, :])
        if j >= 0:
            b = tl.exp(a)
        tl.store(o[j, :], a)
""", lambda x: x[:4], (4, 8)),
    Case("a helper's own name", "KS302", """
def add(acc, row):
    with tl.scratch_scope():
        acc += tl.load(row)

@ks.kernel
def kernel(x, o):
    acc = tl.zeros((8,), tl.float32)
    for j in range(32):
        add(acc, x[j, :])
    tl.store(o[:], acc)
""", total),
    Case("a copy that is lost", "KS203", """
t = tl.load(x[0, :])
with tl.scratch_scope():
    kept = tl.empty((8,), tl.float32)
    u = t * 2.0
    tl.copy_to(kept, u)
    tl.store(o[:], u)
""", lambda x: x[0] * 2),
    Case("a load that could come before", "KS303", """
left = tl.load(x[0:16, :])
for _ in range(8):
    left = tl.tanh(left)
right = tl.load(x[16:32, :])
tl.store(o[:, :], left * right)
""", lambda x: tanh(x[:16]) * x[16:], (16, 8)),
    Case("a load within an expression", "KS303", """
left = tl.load(x[0:16, :])
for _ in range(8):
    left = tl.tanh(left)
tl.store(o[:, :], tl.exp(left) * tl.load(
    x[16:32, :]))
""", lambda x: np.exp(tanh(x[:16])) * x[16:], (16, 8)),
    Case("a load that repeats another", "KS503", """
w = tl.load(x[0:1, :])
for j in range(4):
    with tl.scratch_scope():
        tl.store(o[j, :], tl.load(x[j, :]) + tl.reshape(w * tl.load(x[0:1, :]), (8,)))
""", lambda x: x[:4] + x[0] ** 2, (4, 8), others=("KS303",)),
    Case("a load that repeats another, with a name", "KS503", """
w = tl.load(x[0, :])
for j in range(4):
    with tl.scratch_scope():
        again = tl.load(x[0, :])
        tl.store(o[j, :], tl.load(x[j + 1, :]) * again + w)
""", lambda x: x[1:5] * x[0] + x[0], (4, 8)),
    Case("a load that is the same in each iteration", "KS503", """
for j in range(2):
    w = tl.load(x[0, :])
    with tl.scratch_scope():
        tl.store(o[j, :], tl.load(x[j + 1, :]) * w)
""", lambda x: x[1:3] * x[0], (2, 8)),
    Case("a result whose line calls plain functions", "KS302", """
a = tl.load(x[min(0, 1), :])
b = a * float(max(2, len("of")))
tl.store(o[:], a)
""", lambda x: x[0]),
    Case("a result that is written again, never read", "KS302", """
a = tl.load(x[0, :])
tl.store(o[:], a)
def twice(acc, row):
    acc = row * 2.0
twice(a, a)
""", lambda x: x[0]),
    Case("a load within an expression, its names taken", "KS303", """
x_tile = tl.load(x[0:16, :])
for _ in range(8):
    x_tile = tl.tanh(x_tile)
x_tile_2 = 1.0
tl.store(o[:, :], tl.exp(x_tile) * tl.load(x[16:32, :]) * x_tile_2)
""", lambda x: np.exp(tanh(x[:16])) * x[16:], (16, 8)),
    Case("a store that leaves its tensor", "KS501", """
for j in range(5):
    with tl.scratch_scope():
        rows = slice(j * 8, (j + 1) * 8)
        tl.store(o[rows, :], tl.load(x[rows, :], pad=0.0) * 2.0)
""", lambda x: x * 2, (32, 8)),
    Case("a load that leaves its tensor, into a store that clips", "KS501", """
for j in range(4):
    with tl.scratch_scope():
        rows = slice(j * 10, (j + 1) * 10)
        h = tl.load(x[rows, :])
        tl.store(o[rows, :], tl.exp(h) * 2.0 + h[0:1, :], clip=True)
""", lambda x: np.exp(x) * 2 + np.repeat(x[::10], 10, axis=0)[:32], (32, 8)),
    Case("a store that leaves its tensor, over lines", "KS501", """
h = tl.load(x[0:16, :])
tl.store(
    o[4:20, :],
    h,  # the last rows are beyond
)
tl.store(o[0:4, :], h[0:4, :])
""", lambda x: np.concatenate([x[:4], x[:4]]), (8, 8)),
    Case("a comment for nothing", "KS001", """
h = tl.load(x[0, :])
tl.store(o[:], h)  # kernscope: ignore[KS201]
""", lambda x: x[0]),
    Case("two comments for nothing", "KS001", """
h = tl.load(x[0, :])
tl.store(o[:], h)  # ü kernscope: ignore[ks201, KS202]  # and more
tl.load(x[1, :])  # kernscope: ignore[KS302, KS503]
""", lambda x: x[0]),
    Case("a comment without a code", "KS001", """
h = tl.load(x[0, :])  # kernscope: ignore
tl.store(o[:], h)
""", lambda x: x[0]),
]  # fmt: skip

CASES = [*KEEPING, *WIDENING, *FILLING, *SCOPING, *OVERFLOW, *LINES]
