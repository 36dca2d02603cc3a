"""Instructions between ranks: messages, and work that only some of them have."""

from __future__ import annotations

import random
from typing import Any

import kernscope as ks
from kernscope import tl

from .compute import Compute
from .memory import Memory
from .values import (
    SIZES,
    Frame,
    Value,
)
from .views import Views

#: What a rank may do alone: nothing that meets other ranks.
ALONE = (
    *("load", "load_out", "ragged", "dead_load", "fill", "empty", "unary", "binary", "binary", "where", "reduce"),
    *("dot", "dot_acc", "composite", "slice", "trans", "copy_to", "copy_to", "shift_within", "spill"),
)


class Messages(Memory, Compute, Views):
    """Only in programs of several ranks, which number ``ranks``."""

    ranks: int

    def ways(self, number: int) -> tuple[str, str]:
        """A direction to send in, and the one where what the neighbour sends that way arrives."""
        return (self.line.onward, self.line.backward) if number % 2 else (self.line.backward, self.line.onward)

    def do_shift(self, a: int, b: int, c: int, d: int) -> None:
        """Each rank passes a value on, or as many as a channel holds."""
        if not self.line.joined:
            return self.do_chain(a, b, c, d)
        out, into = self.ways(a)
        values = [self.operand(b), self.operand(c)][: 1 + d % self.slots]
        for value in values:
            tl.send(out, self.read(value))
        for value in values:
            self.add(tl.recv(into, value.shape, value.dtype), value.base.bound)

    def do_shift_async(self, a: int, b: int, c: int, d: int) -> None:
        """Receives posted first, then sends, perhaps both ways; math in between; then the waits, in any order."""
        if not self.line.joined:
            return self.do_chain(a, b, c, d)
        out, into = self.ways(a)
        ways = [(out, into), (into, out)][: 1 + c % 2]
        value = self.operand(b)
        futures = [tl.recv_async(arrival, value.shape, value.dtype) for _, arrival in ways for _ in range(1 + d % 3)]
        for direction, _ in ways:
            for _ in range(1 + d % 3):
                tl.send(direction, self.read(value))
        if a % 3:
            self.do_unary(a, c, d, b)
        for future in futures if b % 2 else reversed(futures):
            self.add(tl.wait(future), value.base.bound)

    def do_shift_into(self, a: int, b: int, c: int, d: int) -> None:
        """What arrives fills a buffer that is there already; perhaps the one it was sent from."""
        if not self.line.joined:
            return self.do_chain(a, b, c, d)
        out, into = self.ways(a)
        value = self.operand(b)
        buffer = value if d % 3 == 0 and value.writable else self.target(c, (value.dtype,))
        rows, cols = (min(pair) for pair in zip(value.shape, buffer.shape, strict=True))
        value, buffer = value.corner(rows, cols), buffer.corner(rows, cols)
        tl.send(out, self.read(value))
        if d % 2:
            tl.recv(into, (rows, cols), value.dtype, out=buffer.handle)
        else:
            tl.wait(tl.recv_async(into, (rows, cols), value.dtype, out=buffer.handle))
            buffer.base.unread = False
        self.wrote(buffer, value.base.bound)

    def do_chain(self, a: int, b: int, c: int, d: int) -> None:
        """From the first rank of a line to the last one, each adds its own."""
        value = self.operand(b)
        if self.line.place > 0:
            got = self.add(tl.recv(self.line.backward, value.shape, value.dtype), value.base.bound)
            total = self.add(tl.maximum(self.read(got), self.read(value)), value.base.bound)
        else:
            total = self.add(tl.abs(self.read(value)), value.base.bound)
            self.add(tl.zeros(value.shape, value.dtype), value.base.bound)
        if self.line.place < self.line.size - 1:
            tl.send(self.line.onward, self.read(total))

    def do_exchange(self, a: int, b: int, c: int, d: int) -> None:
        """Each rank stores what its neighbour loads, once it has been told."""
        if not self.line.joined:
            return self.do_meet(a, b, c, d)
        out, into = self.ways(a)
        value = self.stored_for_others(b)
        tl.notify(out)
        tl.wait_for(into)
        step = -1 if out == self.line.onward else 1
        self.load_from(self.line.rank - self.line.place + (self.line.place + step) % self.line.size, value)

    def do_meet(self, a: int, b: int, c: int, d: int) -> None:
        """All ranks store, meet at a barrier, and load what another one stored."""
        value = self.stored_for_others(b)
        tl.barrier()
        self.load_from((self.rank + a) % self.ranks, value)

    def stored_for_others(self, number: int) -> Value:
        value = self.cast(self.operand(number), tl.float32)
        tl.store(self.shared_by(self.rank, value.shape), self.read(value))
        return value

    def load_from(self, rank: int, value: Value) -> None:
        self.add(tl.load(self.shared_by(rank, value.shape)), value.base.bound)
        self.exchanged += 1

    def shared_by(self, rank: int, shape: tuple[int, int]) -> ks.HbmRegion:
        """Where a rank stores for others this time."""
        top = (self.exchanged * self.ranks + rank) * max(SIZES)
        return self.tensors.shared[top : top + shape[0], : shape[1]]

    def do_pair(self, a: int, b: int, c: int, d: int) -> None:
        """One rank of a line sends to its neighbour; the others have nothing to do."""
        value = self.operand(b)
        sender = a % (self.line.size - 1)
        if self.line.place == sender:
            tl.send(self.line.onward, self.read(value))
        if self.line.place == sender + 1:
            self.add(tl.recv(self.line.backward, value.shape, value.dtype), value.base.bound)
        else:
            self.add(tl.zeros(value.shape, value.dtype), value.base.bound)

    def do_uneven(self, a: int, b: int, c: int, d: int) -> None:
        """Some ranks have more work than others."""
        value = self.operand(b)  # which may load one: on every rank, or the ranks' values would differ from here on
        for _ in range(3 if (self.rank + a) % 2 else 0):
            self.store_at_once(tl.tanh(self.read(value)))

    def do_uneven_messages(self, a: int, b: int, c: int, d: int) -> None:
        """Each rank passes a number of messages of its own to the next one of its line, perhaps none."""
        value = self.operand(b)
        counts = [(a + c * place) % (self.slots + 1) for place in range(self.line.size)]
        if not self.line.joined:
            counts[-1] = 0
        for _ in range(counts[self.line.place]):
            tl.send(self.line.onward, self.read(value))
        for _ in range(counts[self.line.place - 1]):
            self.store_at_once(tl.recv(self.line.backward, value.shape, value.dtype))

    def do_alone(self, a: int, b: int, c: int, d: int) -> None:
        """One rank, or every other one, does in a scope what the others do not: it reads what all have, and writes what
        is its own."""
        if self.alone_from or (self.rank != a % 3 and (b % 2 == 0 or self.rank % 2)):
            return
        rng = random.Random(f"{a} {b} {c} {d} {self.rank}")
        with self.scope():
            self.frames.append(Frame())
            self.alone_from = len(self.frames) - 1
            for _ in range(1 + c % 5):
                name = rng.choice(ALONE)
                getattr(self, f"do_{name}")(*(rng.randrange(64) for _ in range(4)))
            self.alone_from = 0
            self.keep_unread()
            self.frames.pop()

    def do_tangle(self, a: int, b: int, c: int, d: int) -> None:
        """Up to three messages each way, each rank in an order of its own, perhaps passing on what it got: they may
        deadlock."""
        if not self.line.joined:
            return self.do_chain(a, b, c, d)
        value = self.operand(b)
        counts = {self.line.onward: a % 4, self.line.backward: c % 4}
        todo = [("send", way) for way, count in counts.items() for _ in range(count)]
        todo += [
            ("recv", {self.line.onward: self.line.backward, self.line.backward: self.line.onward}[way])
            for _, way in todo
        ]
        rng = random.Random(f"{a} {b} {c} {d} {self.rank}")
        rng.shuffle(todo)
        posted: list[Any] = []
        got: list[ks.TensorHandle] = []
        for kind, way in todo:
            if kind == "send":
                tl.send(way, got[-1] if got and rng.random() < 0.5 else self.read(value))
            elif rng.random() < 0.5:
                got.append(tl.recv(way, value.shape, value.dtype))
            else:
                posted.append(tl.recv_async(way, value.shape, value.dtype))
            if posted and rng.random() < 0.3:
                got.append(tl.wait(posted.pop(rng.randrange(len(posted)))))
        got += [tl.wait(future) for future in posted]
        for handle in got:
            self.add(handle, value.base.bound)
