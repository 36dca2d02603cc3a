"""The inputs of a run: which tensors need one, whether what was given fits, and random ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...ir.arrays.permutations import inverse_permutation
from ...ir.errors import DeadlockError, InputError, did_you_mean, shown
from ...ir.graph import Graph, Node
from ...ir.tables import IntArray, Mode
from .memory import memory_limit
from .order import program_order
from .views import Array, IndexedView, View

__all__ = ["first_unstored_loads", "random_inputs", "ready_inputs"]


def ready_inputs(graph: Graph, inputs: Mapping[str, Any] | None, order: IntArray) -> dict[str, Array]:
    """The input arrays by tensor name: those given, else those the kernel was traced with (``graph.defaults``).

    Raises ``InputError`` for a name that is no tensor of the kernel, another shape or dtype than the tensor's, and a
    tensor that is loaded before it is stored and has no input.
    """
    tensors = graph.tensors
    found: dict[str, Array] = {}
    for name, value in {**graph.defaults, **(inputs or {})}.items():
        if name not in tensors:
            raise InputError(
                f"{graph.kernel} has no tensor {name!r}", help=did_you_mean(str(name), tensors, what="its tensors")
            )
        found[name] = _fitting(graph, name, np.asarray(value))
    for row, node in first_unstored_loads(graph, order).items():
        name = graph.names[graph.storages.name[row]]
        if name not in found:
            layout = graph.layouts[graph.storages.layout[row]]
            error = InputError(
                f"tensor {name!r} is loaded before it is stored and has no input",
                help=f"pass inputs={{{name!r}: an array of shape {layout.shape}, dtype {layout.dtype.numpy}}}",
            )
            raise error.at(Node(graph, node).location, "loaded")
    return found


def _fitting(graph: Graph, name: str, value: Array) -> Array:
    layout = graph.layouts[graph.storages.layout[graph.tensors[name]]]
    if value.shape != layout.shape:
        raise InputError(
            f"input {name!r} has shape {value.shape}, the kernel was traced with {layout.shape}",
            help="pass an array of that shape, or trace the kernel again for this one",
        )
    if value.dtype != layout.dtype.numpy:
        raise InputError(
            f"input {name!r} has dtype {value.dtype}, the kernel was traced with {layout.dtype.numpy}",
            help=f"convert it: {name}.astype({_numpy_name(layout.dtype.numpy)})",
        )
    return value


def _numpy_name(dtype: np.dtype[Any]) -> str:
    return f"{'ml_dtypes' if dtype.type.__module__.startswith('ml_dtypes') else 'np'}.{dtype.type.__name__}"


def first_unstored_loads(graph: Graph, order: IntArray) -> dict[int, int]:
    """For each HBM tensor (storage row) that is loaded, in this order, before those elements were stored: the first
    node that does so. In row order."""
    accesses = graph.accesses
    in_hbm = ~graph.in_scratch[accesses.storage]
    reads = in_hbm & (accesses.mode == Mode.READ)
    position = inverse_permutation(order)
    stored = np.unique(accesses.storage[in_hbm & ~reads])
    found: dict[int, int] = {}
    for row in np.unique(accesses.storage[reads]).tolist():
        touching = (
            np.flatnonzero(in_hbm & (accesses.storage == row))
            if row in stored
            else np.flatnonzero(reads & (accesses.storage == row))
        )
        touching = touching[np.argsort(position[accesses.node[touching]], kind="stable")]
        first = _first_unstored(graph, row, touching)
        if first is not None:
            found[row] = first
    return found


def _first_unstored(graph: Graph, row: int, touching: IntArray) -> int | None:
    """The first of these accesses of a tensor, in their order, that reads an element none before it wrote."""
    if graph.accesses.mode[touching[0]] == Mode.READ:
        return int(graph.accesses.node[touching[0]])
    stored = np.zeros(int(graph.storages.nbytes[row]), dtype=np.bool_)
    for access in touching.tolist():
        layout = graph.layouts[graph.accesses.layout[access]]
        index = graph.attributes[graph.nodes.attributes[graph.accesses.node[access]]].get("index")
        view = View.of(layout) if index is None else IndexedView.of(index, layout)
        start = int(graph.accesses.offset[access]) * view.itemsize
        if graph.accesses.mode[access] == Mode.WRITE:
            view.mark(stored, start)
        elif not view.marks(stored, start).all():
            return int(graph.accesses.node[access])
    return None


def random_inputs(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """An input for every tensor that needs one: the array it was traced with, else random numbers.

    Floats are standard normal, rounded to the tensor's dtype; integers lie in [-8, 8), unsigned ones in [0, 8); bools
    are fair coins. A tensor's numbers depend on the seed and on its place among the kernel's tensors only.

    Raises ``InputError`` for a seed that is no natural number, ``MemoryLimitError`` where the tensors do not fit into
    this machine's memory.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"the seed is {shown(seed)}", help="a seed is an integer, 0 or above")
    with memory_limit(graph):
        return _random_inputs(graph, seed)


def _random_inputs(graph: Graph, seed: int) -> dict[str, Array]:
    try:
        order = program_order(graph)
    except DeadlockError:
        # No order to tell who stores first: by ids a tensor is at worst given an input that it does not need.
        order = np.arange(len(graph), dtype=np.int64)
    needed = first_unstored_loads(graph, order)
    return {
        name: graph.defaults[name]
        if name in graph.defaults
        else _random(graph, row, np.random.default_rng([seed, place]))
        for place, (name, row) in enumerate(graph.tensors.items())
        if row in needed
    }


def _random(graph: Graph, row: int, generator: np.random.Generator) -> Array:
    layout = graph.layouts[graph.storages.layout[row]]
    numbers: Array
    if layout.dtype.is_float:
        numbers = np.asarray(generator.standard_normal(layout.shape, dtype=layout.dtype.computed_in.numpy.type))
    else:
        low, high = {"int": (-8, 8), "uint": (0, 8), "bool": (0, 2)}[layout.dtype.kind]
        numbers = generator.integers(low, high, size=layout.shape)
    return numbers.astype(layout.dtype.numpy)
