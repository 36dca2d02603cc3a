"""Kernels whose findings have no change that is sure to be right: each needs the guard that lets its fix be advice."""

from __future__ import annotations

import attrs

__all__ = ["ADVICE", "Advice"]


@attrs.frozen
class Advice:
    """Why no edit is proposed; the code; and the kernel of ``x`` (32, 8) and ``o``, as in ``fixcases``."""

    name: str
    code: str
    text: str
    shape: tuple[int, ...] = (8,)
    dtype: str = "f32"


ADVICE = [
    Advice("the old value is read, too", "KS201", """
m = tl.load(x[0, :])
old = m
for j in range(1, 4):
    with tl.scratch_scope():
        m = tl.maximum(m, tl.load(x[j, :]))
tl.store(o[:], m - old)
"""),
    Advice("the value before is read after the new one", "KS201", """
m = tl.load(x[0, :])
for j in range(1, 4):
    with tl.scratch_scope():
        before = m
        m = tl.maximum(m, tl.load(x[j, :]))
        tl.store(o[:], m - before)
"""),
    Advice("a ragged tile", "KS201", """
for j in range(2):
    with tl.scratch_scope():
        t = tl.load(x[0 : 4 + j, :])
    tl.store(o[:], tl.sum(t, axis=0))
"""),
    Advice("a view of a result without a name", "KS201", """
with tl.scratch_scope():
    row = (tl.load(x[0:2, :]) + 1.0)[1, :]
b = tl.load(x[1, :])
tl.store(o[:], row + b)
"""),
    Advice("two names at once", "KS201", """
with tl.scratch_scope():
    a, b = tl.load(x[0, :]), tl.load(x[1, :])
c = tl.load(x[2, :])
tl.store(o[:], a + b + c)
"""),
    Advice("the wrong half is read", "KS204", """
both = tl.empty((2, 8), tl.float32)
for j in range(2):
    tl.load(x[j, :], out=both[j, :])
    tl.store(o[:], both[(j + 1) % 2, :])
"""),
    Advice("a comprehension", "KS103", """
for j in range(2):
    [tl.store(o[:], tl.load(x[i, :]) * 2.0) for i in range(8)]
"""),
    Advice("an inner loop's own sum", "KS103", """
for j in range(4):
    acc = tl.load(x[j, :]) * 1.0
    for i in range(8):
        acc = acc + tl.load(x[i, :])
    tl.store(o[:], acc)
"""),
    Advice("calls by map", "KS103", """
def step(j):
    tl.store(o[:], tl.load(x[j, :]) * 2.0)
for _ in range(2):
    list(map(step, range(8)))
"""),
    Advice("a name that is read on", "KS301", """
with tl.scratch_scope():
    a = tl.load(x[0, :])
    print(a)
tl.store(o[:], tl.load(x[1, :]))
"""),
    Advice("what it reads has no other reader", "KS302", """
a = tl.load(x[0, :])
b = tl.exp(a)
tl.store(o[:], tl.load(x[1, :]))
"""),
    Advice("the sum so far is used in the loop", "KS601", """
acc = tl.zeros((8,), tl.float16)
for j in range(4):
    with tl.scratch_scope():
        tl.copy_to(acc, acc + tl.load(x[j, :]).to(tl.float16))
        tl.store(o[:], acc.to(tl.float32))
"""),
    Advice("only some loads repeat", "KS503", """
for m in range(4):
    with tl.scratch_scope():
        a = tl.load(x[m, :])
        acc = tl.zeros((8,), tl.float32)
        for n in range(m + 1):
            with tl.scratch_scope():
                tl.copy_to(acc, acc + a * tl.load(x[n, :]))
        tl.store(o[:], acc)
"""),
    Advice("the handle is written before the second load is used up", "KS503", """
a = tl.load(x[0, :])
b = tl.load(x[0, :])
tl.copy_to(a, a + 1.0)
tl.store(o[:], a * b)
"""),
    Advice("what is loaded depends on what lies between", "KS303", """
left = tl.load(x[0:4, :])
for row in range(8):
    left = tl.tanh(left)
right = tl.load(x[row - 3 : row + 1, :])
tl.store(o[:], tl.sum(left * right, axis=0))
"""),
    Advice("two calls of a helper on one line", "KS303", """
def wide(row):
    h = tl.load(row)
    for _ in range(8):
        h = tl.tanh(h)
    return h

@ks.kernel
def kernel(x, o):
    tl.store(o[:], wide(x[0, :]) + wide(x[1, :]))
"""),
    Advice("a handle of the first half is read in the second", "KS104", """
with tl.scratch_scope():
    a = tl.load(x[0, :])
    left = tl.load(x[0:16, :])
    tl.store(o[:], tl.sum(left, axis=0))
    right = tl.load(x[16:32, :])
    tl.store(o[:], tl.sum(tl.exp(right), axis=0) + a)
"""),
    Advice("the name means another handle than the one that was made under it", "KS201", """
m = tl.load(x[0, :])
tl.store(o[:], m)
k = tl.load(x[1, :])
m = k
with tl.scratch_scope():
    m = tl.load(x[2, :])
c = tl.load(x[3, :])
tl.store(o[:], m + k + c)
"""),
    Advice("the value is returned", "KS201", """
def largest(x):
    m = tl.load(x[0, :])
    for j in range(1, 4):
        with tl.scratch_scope():
            m_new = tl.maximum(m, tl.load(x[j, :]))
            m = m_new
    return m

@ks.kernel
def kernel(x, o):
    tl.store(o[:], largest(x) + tl.load(x[5, :]))
"""),
    Advice("a list filled in a loop of the scope", "KS201", """
tiles = []
with tl.scratch_scope():
    for j in range(4):
        t = tl.load(x[j, :])
        tiles.append(t)
b = tl.load(x[5, :])
tl.store(o[:], tiles[0] + tiles[3] + b)
"""),
    Advice("a helper that is called often", "KS201", """
def doubled(row):
    with tl.scratch_scope():
        s = tl.load(row) * 2.0
    return s

@ks.kernel
def kernel(x, o):
    for j in range(4):
        tl.store(o[:], doubled(x[j, :]) + tl.load(x[j + 8, :]))
"""),
    Advice("a scope that no `with` statement opens", "KS201", """
from contextlib import ExitStack

@ks.kernel
def kernel(x, o):
    with ExitStack() as scopes:
        scopes.enter_context(tl.scratch_scope())
        a = tl.load(x[0, :])
    tl.store(o[:], a + tl.load(x[1, :]))
"""),
    Advice("a scope of the author's own context manager", "KS201", """
from contextlib import contextmanager

@contextmanager
def mine():
    with tl.scratch_scope():
        yield

@ks.kernel
def kernel(x, o):
    with mine():
        a = tl.load(x[0, :])
    tl.store(o[:], a + tl.load(x[1, :]))
"""),
    Advice("another name of `tl.empty`", "KS204", """
make = tl.empty
acc = make((8,), tl.float32)
tl.store(o[:], acc)
"""),
    Advice("another module's name of `tl.empty`", "KS204", """
class lib:
    make = tl.empty

@ks.kernel
def kernel(x, o):
    acc = lib.make((8,), tl.float32)
    tl.store(o[:], acc)
"""),
    Advice("a helper of the author's, which may do more", "KS302", """
def same(h):
    return h

@ks.kernel
def kernel(x, o):
    a = tl.load(x[0, :])
    b = tl.exp(same(a))
    tl.store(o[:], a)
"""),
    Advice("its line stores, too", "KS302", """
a = tl.load(x[0, :])
b = tl.exp((tl.store(o[:], a), a)[1])
c = tl.load(x[1, :])
tl.store(o[:], c + a)
"""),
    Advice("written by a name that is looked up", "KS302", """
a = tl.load(x[0, :])
b = tl.exp(a)
tl.copy_to(locals()["b"], a)
tl.store(o[:], a)
"""),
    Advice("its line waits for a value", "KS302", """
def half(a, o):
    b = tl.exp((yield))
    tl.store(o[:], a)

@ks.kernel
def kernel(x, o):
    a = tl.load(x[0, :])
    run = half(a, o)
    next(run)
    try:
        run.send(a)
    except StopIteration:
        pass
    tl.store(o[:], a)
"""),
    Advice("an augmented assignment whose old value nobody reads", "KS302", """
a = tl.load(x[0, :])
tl.store(o[:], a)
a += 1.0
"""),
    Advice("a helper's own two names", "KS302", """
def twice(acc, row):
    acc = other = acc + row

@ks.kernel
def kernel(x, o):
    acc = tl.load(x[0, :])
    twice(acc, tl.load(x[1, :]))
    tl.store(o[:], acc)
"""),
    Advice("a load in the head of a loop", "KS303", """
left = tl.load(x[0:16, :])
for _ in range(8):
    left = tl.tanh(left)
for right in (tl.load(x[16:32, :]),):
    tl.store(o[:], tl.sum(left * right, axis=0))
"""),
    Advice("what lies between may leave", "KS303", """
left = tl.load(x[0:16, :])
for step in range(9):
    if step == 8:
        break
    left = tl.tanh(left)
right = tl.load(x[16:32, :])
tl.store(o[:], tl.sum(left * right, axis=0))
"""),
    Advice("a method in between changes what is loaded", "KS303", """
rows = [0]
left = tl.load(x[0:16, :])
for _ in range(8):
    left = tl.tanh(left)
rows.append(16)
right = tl.load(x[rows[1] : 32, :])
tl.store(o[:], tl.sum(left * right, axis=0))
"""),
    Advice("a function in between changes what is loaded", "KS303", """
def advance(rows):
    rows.append(16)

@ks.kernel
def kernel(x, o):
    rows = [0]
    left = tl.load(x[0:16, :])
    for _ in range(8):
        left = tl.tanh(left)
    advance(rows)
    right = tl.load(x[rows[1] : 32, :])
    tl.store(o[:], tl.sum(left * right, axis=0))
"""),
    Advice("its place is given within the loop", "KS503", """
for j in range(4):
    row = 0
    w = tl.load(x[row, :])
    with tl.scratch_scope():
        tl.store(o[:], tl.load(x[j + 1, :]) * w)
"""),
    Advice("its handle is written in one iteration", "KS503", """
for j in range(4):
    w = tl.load(x[0, :])
    if j == 1:
        tl.copy_to(w, w * 2.0)
    with tl.scratch_scope():
        tl.store(o[:], tl.load(x[j + 1, :]) * w)
"""),
    Advice("a load in the head of an inner loop", "KS503", """
for j in range(4):
    for w in (tl.load(x[0, :]),):
        with tl.scratch_scope():
            tl.store(o[:], tl.load(x[j + 1, :]) * w)
"""),
    Advice("a subscript of the author's own does the work", "KS103", """
class Tiles:
    def __init__(self, x, o):
        self.x, self.o = x, o
    def __getitem__(self, j):
        tl.store(self.o[:], tl.load(self.x[j, :]) * 2.0)

@ks.kernel
def kernel(x, o):
    tiles = Tiles(x, o)
    for j in range(16):
        tiles[j]
"""),
    Advice("a helper returns its loop's last value", "KS103", """
def last(x):
    for j in range(16):
        t = tl.load(x[j, :]) * 2.0
    return t

@ks.kernel
def kernel(x, o):
    tl.store(o[:], last(x))
"""),
    Advice("what few of an inner loop's iterations make is read behind it", "KS103", """
for j in range(4):
    for i in range(8):
        a = tl.load(x[i, :])
        tl.store(o[:], a)
        if i == 7:
            b = tl.exp(a)
    tl.store(o[:], b)
"""),
    Advice("two carried values on a line", "KS103", """
m = tl.load(x[0, :])
l = tl.load(x[1, :])
for j in range(2, 16):
    row = tl.load(x[j, :])
    m = tl.maximum(m, row); l = l + row
tl.store(o[:], m + l)
"""),
    Advice("a scope that no `with` statement opens", "KS104", """
from contextlib import ExitStack

@ks.kernel
def kernel(x, o):
    with ExitStack() as scopes:
        scopes.enter_context(tl.scratch_scope())
        left = tl.load(x[0:16, :])
        tl.store(o[:], tl.sum(left, axis=0))
        right = tl.load(x[16:32, :])
        tl.store(o[:], tl.sum(right, axis=0))
"""),
    Advice("a scope of the author's own context manager", "KS104", """
from contextlib import contextmanager

@contextmanager
def mine():
    with tl.scratch_scope():
        yield

@ks.kernel
def kernel(x, o):
    with mine():
        left = tl.load(x[0:16, :])
        tl.store(o[:], tl.sum(left, axis=0))
        right = tl.load(x[16:32, :])
        tl.store(o[:], tl.sum(right, axis=0))
"""),
    Advice("the scope has a name", "KS104", """
with tl.scratch_scope() as scope:
    left = tl.load(x[0:16, :])
    tl.store(o[:], tl.sum(left, axis=0))
    right = tl.load(x[16:32, :])
    tl.store(o[:], tl.sum(right, axis=0))
"""),
    Advice("two scopes in one statement", "KS104", """
with tl.scratch_scope("a"), tl.scratch_scope("b"):
    left = tl.load(x[0:16, :])
    tl.store(o[:], tl.sum(left, axis=0))
    right = tl.load(x[16:32, :])
    tl.store(o[:], tl.sum(right, axis=0))
"""),
    Advice("both halves on one line", "KS104", """
with tl.scratch_scope():
    left = tl.load(x[0:16, :])
    tl.store(o[:], tl.sum(left, axis=0)); right = tl.load(x[16:32, :])
    tl.store(o[:], tl.sum(right, axis=0))
"""),
    Advice("the first half on the scope's line", "KS104", """
with tl.scratch_scope(): a = tl.load(x[0, :]); tl.store(o[:], a); b = tl.load(x[1, :]); tl.store(o[:], b)
"""),
    Advice("a handle is read behind the scope", "KS104", """
with tl.scratch_scope():
    s = tl.load(x[0, :]) + 1.0
    tl.store(o[:], s)
    s = tl.exp(tl.load(x[1, :]))
b = tl.load(x[2, :])
tl.store(o[:], s + b)
"""),
    Advice("`clip=` is given", "KS501", """
h = tl.load(x[0:4, 0])
tl.store(o[6:10], h, clip=False)
"""),
    Advice("another name of `tl.store`", "KS501", """
put = tl.store
h = tl.load(x[0:4, 0])
put(o[6:10], h)
"""),
    Advice("no argument by position", "KS501", """
h = tl.load(x[0:4, 0])
tl.store(dst=o[6:10], src=h)
"""),
    Advice("its dtype is in a dictionary", "KS601", """
acc = tl.full((8,), 0.0, **{"dtype": tl.float16})
for j in range(32):
    with tl.scratch_scope():
        tl.copy_to(acc, acc + tl.load(x[j, :]))
tl.store(o[:], acc)
""", dtype="f16"),
    Advice("a sum that begins with a load", "KS601", """
acc = tl.load(x[0, :])
for j in range(1, 32):
    with tl.scratch_scope():
        tl.copy_to(acc, acc + tl.load(x[j, :]))
tl.store(o[:], acc)
""", dtype="f16"),
    Advice("a sum in a list", "KS601", """
sums = [tl.zeros((8,), tl.float16)]
for j in range(1, 32):
    with tl.scratch_scope():
        tl.copy_to(sums[0], sums[0] + tl.load(x[j, :]))
tl.store(o[:], sums[0])
""", dtype="f16"),
    Advice("a comprehension gives its name, too", "KS601", """
acc = tl.zeros((8,), tl.float16)
for j in range(32):
    with tl.scratch_scope():
        tl.copy_to(acc, acc + tl.load(x[j, :]))
[None for acc in ()]
tl.store(o[:], acc)
""", dtype="f16"),
    Advice("a lambda's parameter has its name", "KS601", """
acc = tl.zeros((8,), tl.float16)
for j in range(32):
    with tl.scratch_scope():
        tl.copy_to(acc, acc + tl.load(x[j, :]))
same = lambda acc: acc
tl.store(o[:], same(acc))
""", dtype="f16"),
    Advice("a function has its name", "KS601", """
acc = tl.zeros((8,), tl.float16)
for j in range(32):
    with tl.scratch_scope():
        tl.copy_to(acc, acc + tl.load(x[j, :]))
tl.store(o[:], acc)
def acc(): return None
""", dtype="f16"),
    Advice("the sum so far is stored in the loop", "KS601", """
acc = tl.zeros((8,), tl.float16)
for j in range(32):
    with tl.scratch_scope():
        tl.copy_to(acc, acc + tl.load(x[j, :]))
        tl.store(o[:], acc)
""", dtype="f16"),
    Advice("the sum's line names a dtype", "KS601", """
acc = tl.zeros((8, 8), tl.float16)
for j in range(4):
    with tl.scratch_scope():
        a = tl.load(x[j * 8 : j * 8 + 8, :])
        tl.copy_to(acc, acc + tl.dot(a, a, out_dtype=tl.float16))
tl.store(o[:, :], acc)
""", dtype="f16", shape=(8,8)),
    Advice("within another statement", "KS206", """
scopes = 0
scopes += len((tl.scratch_scope(),))
tl.store(o[:], tl.load(x[0, :]))
"""),
    Advice("a decorator does the work", "KS103", """
def run(step):
    step()

@ks.kernel
def kernel(x, o):
    for j in range(8):
        @run
        def step():
            tl.store(o[:], tl.load(x[j, :]) * 2.0)
"""),
    Advice("the sum is put into a list", "KS601", """
acc = tl.zeros((8,), tl.float16)
for j in range(32):
    with tl.scratch_scope():
        tl.copy_to(acc, acc + tl.load(x[j, :]))
sums = [acc]
tl.store(o[:], acc)
""", dtype="f16"),
    Advice("a list's own method takes the sum", "KS601", """
sums = []
acc = tl.zeros((8,), tl.float16)
for j in range(32):
    with tl.scratch_scope():
        tl.copy_to(acc, acc + tl.load(x[j, :]))
sums.append(acc)
tl.store(o[:], acc)
""", dtype="f16"),
]  # fmt: skip
