"""Helps that propose no edit, since what is right depends on what the author means: followed as a reader would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest

import kernscope as ks
from kernscope.linter import RULES

from .conftest import HEADER
from .fixcases import CASES, X

Load = Callable[[str], ks.Kernel]


@attrs.frozen
class ByHand:
    """A kernel's body, a part of the help of its finding, the body after it was followed, and what is meant."""

    name: str
    code: str
    before: str
    said: str
    after: str
    meant: Callable[[Any], Any]
    shape: tuple[int, ...] = (32, 8)
    ranks: int = 1


BY_HAND = [
    ByHand("a copy onto itself", "KS205", """
a = tl.load(x[:, :])
tl.copy_to(a[1:32, :], a[0:31, :])
tl.store(o[:, :], a)
""", "`t = tl.empty(src.shape, src.dtype)`, `tl.copy_to(t, src)`, then `tl.copy_to(dst, t)`", """
a = tl.load(x[:, :])
t = tl.empty(a[0:31, :].shape, a[0:31, :].dtype)
tl.copy_to(t, a[0:31, :])
tl.copy_to(a[1:32, :], t)
tl.store(o[:, :], a)
""", lambda x: np.vstack([x[:1], x[:31]])),
    ByHand("an accumulator that is a factor", "KS205", """
a = tl.load(x[0:8, :])
tl.dot(a, a, acc=a)
tl.store(o[:, :], a)
""", "accumulate into a handle that shares no bytes with the factors, then `tl.copy_to` it over them", """
a = tl.load(x[0:8, :])
acc = tl.empty(a.shape, a.dtype)
tl.copy_to(acc, a)
tl.dot(a, a, acc=acc)
tl.copy_to(a, acc)
tl.store(o[:, :], a)
""", lambda x: x[:8] + x[:8] @ x[:8], (8, 8)),
    ByHand("an operation onto its own transpose", "KS205", """
a = tl.load(x[0:8, :])
tl.exp(tl.trans(a), out=a)
tl.store(o[:, :], a)
""", "leave `out=` of `tl.exp` away", """
a = tl.load(x[0:8, :])
a = tl.exp(tl.trans(a))
tl.store(o[:, :], a)
""", lambda x: np.exp(x[:8].T), (8, 8)),
    ByHand("a wrong slot", "KS304", """
slots = [tl.empty((8, 8), tl.float32), tl.empty((8, 8), tl.float32)]
tl.load(x[0:8, :], out=slots[0])
for i in range(4):
    if i < 3:
        tl.load(x[i * 8 + 8 : i * 8 + 16, :], out=slots[(i + 1) % 2])
    tl.store(o[i * 8 : i * 8 + 8, :], slots[0])
""", "the one that was filled for this iteration", """
slots = [tl.empty((8, 8), tl.float32), tl.empty((8, 8), tl.float32)]
tl.load(x[0:8, :], out=slots[0])
for i in range(4):
    if i < 3:
        tl.load(x[i * 8 + 8 : i * 8 + 16, :], out=slots[(i + 1) % 2])
    tl.store(o[i * 8 : i * 8 + 8, :], slots[i % 2])
""", lambda x: x),
    ByHand("a load that nobody meets", "KS304", """
a = tl.empty((8, 8), tl.float32)
tl.load(x[0:8, :], out=a)
tl.load(x[8:16, :], out=a)
tl.store(o[:, :], a)
""", "a load that no line needs", """
a = tl.empty((8, 8), tl.float32)
tl.load(x[8:16, :], out=a)
tl.store(o[:, :], a)
""", lambda x: x[8:16], (8, 8)),
    ByHand("the last rank sends, too", "KS401", """
rank = tl.program_id(0)
tl.send("next", tl.load(x[rank * 8 : rank * 8 + 8, :]))
if rank > 0:
    tl.store(o[rank * 8 : rank * 8 + 8, :], tl.recv("prev", (8, 8), tl.float32))
else:
    tl.store(o[0:8, :], tl.zeros((8, 8), tl.float32))
""", "on rank 0 add `tl.recv(\"prev\", (8, 8), tl.float32)`", """
rank = tl.program_id(0)
tl.send("next", tl.load(x[rank * 8 : rank * 8 + 8, :]))
if rank > 0:
    tl.store(o[rank * 8 : rank * 8 + 8, :], tl.recv("prev", (8, 8), tl.float32))
else:
    tl.recv("prev", (8, 8), tl.float32)
    tl.store(o[0:8, :], tl.zeros((8, 8), tl.float32))
""", lambda x: np.vstack([np.zeros((8, 8), np.float32), x[:24]]), ranks=4),
    ByHand("everybody receives first", "KS402", """
rank = tl.program_id(0)
theirs = tl.recv("prev", (8, 8), tl.float32)
tl.send("next", tl.load(x[rank * 8 : rank * 8 + 8, :]))
tl.store(o[rank * 8 : rank * 8 + 8, :], theirs)
""", "send", """
rank = tl.program_id(0)
tl.send("next", tl.load(x[rank * 8 : rank * 8 + 8, :]))
theirs = tl.recv("prev", (8, 8), tl.float32)
tl.store(o[rank * 8 : rank * 8 + 8, :], theirs)
""", lambda x: np.vstack([x[24:], x[:24]]), ranks=4),
    ByHand("every rank stores the same rows", "KS502", """
rank = tl.program_id(0)
tl.store(o[0:8, :], tl.load(x[rank * 8 : rank * 8 + 8, :]))
""", "give each rank a part of `o` of its own", """
rank = tl.program_id(0)
tl.store(o[rank * 8 : rank * 8 + 8, :], tl.load(x[rank * 8 : rank * 8 + 8, :]))
""", lambda x: x, ranks=4),
    ByHand("a half is never stored", "KS504", """
tl.store(o[0:16, :], tl.load(x[0:16, :]))
""", "store the rest, too", """
tl.store(o[0:16, :], tl.load(x[0:16, :]))
tl.store(o[16:32, :], tl.load(x[16:32, :]))
""", lambda x: x),
    ByHand("nothing is stored", "KS505", """
a = tl.exp(tl.load(x[:, :]))
""", "write the result to HBM: `tl.store(o[...], ...)`", """
a = tl.exp(tl.load(x[:, :]))
tl.store(o[...], a)
""", np.exp),
    ByHand("a default that remembers", "KS701", """
def row(seen=kernel.__dict__.setdefault("seen", [])):
    seen.append(None)
    return len(seen) - 1
start = 8 * row()
tl.store(o[:, :], tl.load(x[start : start + 8, :]))
""", "on no default that it changes", """
def row(seen=[]):
    return len(seen)
start = 8 * row()
tl.store(o[:, :], tl.load(x[start : start + 8, :]))
""", lambda x: x[:8], (8, 8)),
]  # fmt: skip

#: Rules whose help is advice that no short kernel can follow, and why.
ADVICE_ONLY = {
    "KS102": "no fault: it says how many bytes are left, and the command that finds a larger tile, which "
    "tests/cli/test_fit.py follows",
    "KS403": "its help gives a choice of machine or order; its page's fix is linted in test_pages.py",
    **dict.fromkeys(
        ("KS801", "KS802", "KS803", "KS804", "KS805", "KS806"),
        "it speaks of a launch of programs, which these kernels are not; its page's fix is linted in test_pages.py",
    ),
}


def kernel_of(load_kernel: Load, body: str) -> ks.Kernel:
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    return load_kernel(f"{HEADER}@ks.kernel\ndef kernel(x, o):\n{lines}")


@pytest.mark.parametrize("case", BY_HAND, ids=lambda case: f"{case.code}: {case.name}")
def test_a_help_that_is_followed_by_hand_helps(load_kernel: Load, case: ByHand) -> None:
    """The finding is there, its help says this and is no edit; followed, the finding is gone, no error or warning has
    come, and the numbers are what is meant, with rewound scratch poisoned."""
    tensors = X, ks.hbm(case.shape, "f32")
    before = ks.lint(kernel_of(load_kernel, case.before), *tensors, ranks=case.ranks, trace_twice=True)
    findings = before.of(case.code)
    assert findings and case.said in findings[0].help and not findings[0].fixes, before
    followed = kernel_of(load_kernel, case.after)
    after = ks.lint(followed, *tensors, ranks=case.ranks, trace_twice=True)
    come = Counter(d.code for d in after.at_least("warning")) - Counter(d.code for d in before)
    assert not after.of(case.code) and not come, after
    graph = ks.trace(followed, *tensors, ranks=case.ranks)
    (got,) = ks.run(graph, poison=True).values()
    np.testing.assert_allclose(got, case.meant(X), rtol=1e-5)


def test_the_help_of_every_rule_is_followed_or_says_why_not() -> None:
    """As an edit, by hand, or in the list with its reason; each in one of them only where it can be."""
    edits, hands = {case.code for case in CASES}, {case.code for case in BY_HAND}
    assert edits | hands | set(ADVICE_ONLY) == set(RULES)
    assert not (edits & hands) and not set(ADVICE_ONLY) & (edits | hands)
