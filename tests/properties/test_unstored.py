"""What is never stored: three ways to tell agree, over random kernels whose outputs are mostly empty."""

from __future__ import annotations

import functools
from typing import Any
from unittest import mock

import kernelgen
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope.backends.execution.execute import execute
from kernscope.backends.execution.memory import Memory
from kernscope.ir.tables import AccessKind, Mode
from kernscope.ir.unstored import find_unstored
from kernscope.linter.analyses.races import find_races

ANY = st.one_of(kernelgen.programs(), kernelgen.programs(ranks=2, max_size=20))


def elements_of(access: Any) -> np.ndarray[Any, Any]:
    """The elements of its tensor that an access covers."""
    if access.kind == AccessKind.RANGE:
        return np.arange(access.offset, access.offset + access.layout.span)
    places = np.array([access.offset], dtype=np.int64)
    for size, stride in zip(access.layout.shape, access.layout.strides, strict=True):
        places = (places[:, None] + np.arange(size if stride else 1) * stride).reshape(-1)
    return np.unique(places)


def run_with(poison: int, graph: ks.Graph, inputs: Any) -> Any:
    """Execute with outputs that begin with other bytes."""
    with mock.patch("kernscope.backends.execution.execute.Memory", functools.partial(Memory, poison=poison)):
        return execute(graph, inputs)


@kernelgen.examples(60)
@given(ANY)
def test_what_keeps_its_first_bytes_is_what_no_store_covers(program: kernelgen.Program) -> None:
    """Executed twice, from two different patterns of bits: an element is never stored exactly where both remain, and
    where the boxes say so."""
    graph = program.trace()
    inputs = program.inputs()
    ones, other = (run_with(pattern, graph, inputs) for pattern in (0xFF, 0x3C))
    assert ones.unstored.keys() == other.unstored.keys()
    for name, value in ones.outputs.items():
        bytes_of = [np.ascontiguousarray(v).view(np.uint8).reshape(*v.shape, -1) for v in (value, other.outputs[name])]
        kept = (bytes_of[0] == 0xFF).all(axis=-1) & (bytes_of[1] == 0x3C).all(axis=-1)
        unstored = ones.unstored.get(name)
        mask = np.zeros(value.shape, dtype=np.bool_) if unstored is None else unstored.mask()
        np.testing.assert_array_equal(mask, kept if name not in inputs else np.zeros_like(kept))
        if unstored is None:
            continue
        drawn = np.zeros(value.shape, dtype=np.int64)
        for lower, upper in unstored.boxes():
            drawn[tuple(slice(a, b) for a, b in zip(lower, upper, strict=True))] += 1
        np.testing.assert_array_equal(drawn, mask)
        assert unstored.count == mask.sum() > 0


def judged(graph: ks.Graph) -> set[int]:
    """The tensors of which KS504 has to speak, element by element."""
    raced = {race.storage for race in find_races(graph)}
    found = set()
    for row in graph.tensors.values():
        accesses = [(n.rank, a.mode, elements_of(a)) for n in graph for a in n.accesses if a.storage.row == row]
        size = graph.storage(row).layout.size
        stored, loaded = np.zeros((graph.ranks, size), dtype=np.bool_), np.zeros(size, dtype=np.bool_)
        for rank, mode, elements in accesses:
            if mode is Mode.WRITE:
                stored[rank, elements] = True
            else:
                loaded[elements] = True
        complete, none = stored.any(axis=0).all(), not stored.any()
        notes = loaded[stored.any(axis=0)].all()
        if complete or none or notes or row in raced:
            continue
        known = np.stack([np.delete(stored, rank, axis=0).any(axis=0) for rank in range(graph.ranks)])
        begins_with_values = False
        for rank, mode, elements in accesses:
            if mode is Mode.WRITE:
                known[rank, elements] = True
            else:
                begins_with_values |= not known[rank, elements].all()
        if not begins_with_values:
            found.add(row)
    return found


@kernelgen.examples(60)
@given(ANY)
def test_the_rule_speaks_of_outputs_alone(program: kernelgen.Program) -> None:
    """Of every tensor that begins without values and is stored in part; of no other."""
    graph = program.trace()
    named = {find.name: find.storage for find in find_unstored(graph)}
    report = ks.lint(graph, select=["KS504"])
    said = {named[finding.message.partition("`")[2].partition("`")[0]] for finding in report}
    assert said == judged(graph)
