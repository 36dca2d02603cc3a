"""Arguments of the wrong type: each public function refuses them by one typed error, with the value and a help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest

import kernscope as ks
from kernscope import tl


@ks.kernel
def copies(x: Any, o: Any, *, n: int = 4) -> None:
    """A load and a store."""
    tl.store(o[:, :], tl.load(x[:, :]))


X = ks.hbm((8, 8), "f32")
GRAPH = ks.trace(copies, X, X)
MADE = ks.schedule(GRAPH)
JUNK: tuple[Any, ...] = (5, None, "copies", [], {}, np.array([1, 2]), np.array(["list", "lazy"]), b"list", copies)
Call = Callable[[Any], Any]


def refused(call: Call, value: Any, kind: type[ks.errors.KernscopeError]) -> ks.errors.KernscopeError:
    """The error that a call raises: of this kind, with a line that says what to pass."""
    with pytest.raises(ks.errors.KernscopeError) as caught:
        call(value)
    assert type(caught.value) is kind, (type(caught.value), value)
    assert caught.value.help and "\n" not in caught.value.message
    return caught.value


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("schedule", ks.schedule),
        ("compare", ks.compare),
        ("liveness", ks.liveness),
        ("rebuffer", lambda value: ks.rebuffer(value, 2)),
        ("run", ks.run),
        ("verify", ks.verify),
        ("draw", ks.draw),
        ("report", lambda value: ks.report(value, "page.html")),
        ("to_networkx", ks.to_networkx),
        ("check", ks.check),
        ("moved_against", MADE.moved_against),
    ],
)
@pytest.mark.parametrize("value", JUNK, ids=lambda value: type(value).__name__)
def test_what_is_no_graph_or_schedule(name: str, call: Call, value: Any) -> None:
    """A kernel that was not traced, above all."""
    error = refused(call, value, ks.ArgumentError)
    assert error.message.startswith(f"{name} takes a ")
    taken = "ks.schedule" if name in ("check", "moved_against") else "ks.trace"
    assert taken in error.help


@pytest.mark.parametrize("call", [
    lambda value: ks.load_machine(value),
    lambda value: ks.schedule(GRAPH, machine=value),
    lambda value: ks.compare(GRAPH, machine=value),
    lambda value: ks.trace(copies, X, X, machine=value),
    lambda value: ks.lint(GRAPH, machine=value),
    lambda value: ks.fit(copies, "n", [1], x=X, o=X, machine=value),
])  # fmt: skip
@pytest.mark.parametrize("value", [v for v in JUNK if v is not None], ids=lambda value: type(value).__name__)
def test_what_is_no_machine(call: Call, value: Any) -> None:
    """Neither a name, a path nor a ``Machine``."""
    assert "no machine" in refused(call, value, ks.MachineError).message


@pytest.mark.parametrize("value", JUNK, ids=lambda value: type(value).__name__)
def test_what_is_no_policy_or_effort(value: Any) -> None:
    """One policy is a name, several are a sequence of names; an effort is a name. Hashable or not."""
    assert "no policy" in refused(lambda v: ks.schedule(GRAPH, v), value, ks.PolicyError).message
    for call in (ks.schedule, ks.compare):
        assert "no effort" in refused(lambda v, call=call: call(GRAPH, effort=v), value, ks.PolicyError).message
    assert "no policy" in refused(lambda v: ks.compare(GRAPH, [v]), value, ks.PolicyError).message
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        assert "policies=" in refused(lambda v: ks.compare(GRAPH, v), value, ks.PolicyError).message


def test_policies_may_come_from_a_generator() -> None:
    """Any iterable of names, one that can be walked only once too: a row each."""
    ladder = ks.compare(GRAPH, (policy for policy in ("lazy", "list")))
    assert [row.policy for row in ladder] == ["lazy", "list"]


@pytest.mark.parametrize("value", [0, -1, True, 1.0, "2", [2], np.array([1, 2])], ids=repr)
def test_what_is_no_number_of_ranks(value: Any) -> None:
    """``fit`` refuses it as ``trace`` does: no row of a table could help."""
    for call in (
        lambda v: ks.trace(copies, X, X, ranks=v),
        lambda v: ks.fit(copies, "n", [1], x=X, o=X, ranks=v),
    ):
        assert refused(call, value, ks.ArgumentError).help == "ranks is a positive integer"


@pytest.mark.parametrize("value", [v for v in JUNK if not isinstance(v, str)], ids=lambda value: type(value).__name__)
def test_what_fit_cannot_try(value: Any) -> None:
    """A parameter is a name, a goal one of two names, values are numbers: letters and bytes stand for none."""
    assert "is no name" in refused(lambda v: ks.fit(copies, v, [1], x=X, o=X), value, ks.ArgumentError).message
    assert "goal" in refused(lambda v: ks.fit(copies, "n", [1], v, x=X, o=X), value, ks.errors.OptionError).message
    for letters in ("123", b"123", 5, [None], [float("nan")], [True]):
        refused(lambda v: ks.fit(copies, "n", v, x=X, o=X), letters, ks.ArgumentError)


@pytest.mark.parametrize("column", ["issue_ps", "start_ps", "end_ps", "engine", "lane"])
@pytest.mark.parametrize("value", [None, 5, "x", [0, 0], [[1], [1, 2]]], ids=repr)
def test_a_column_that_is_no_array_is_a_violation(column: str, value: Any) -> None:
    """The checker says so and judges nothing else: it raises for no schedule, however wrong."""
    (found,) = ks.check(attrs.evolve(MADE, **{column: value}))
    assert (found.rule, found.nodes) == ("shape", ())
    assert found.message == f"{column} is {value!r}, no array"


@pytest.mark.parametrize("value", [5, b"a.svg", [], copies, 1.5, {}], ids=lambda value: type(value).__name__)
def test_what_pictures_and_pages_do_not_take(value: Any) -> None:
    """Paths, formats, foldings, schedules, and whole numbers."""
    for call in (
        lambda v: ks.draw(GRAPH, v),
        lambda v: ks.timeline(MADE, v),
        lambda v: ks.report(GRAPH, v),
    ):
        assert "is no path" in refused(call, value, ks.errors.OutputError).message
    for call in (
        lambda v: ks.draw(GRAPH, format=v),
        lambda v: ks.timeline(MADE, format=v),
        lambda v: ks.draw(GRAPH, fold=v),
        lambda v: ks.timeline(v),
    ):
        refused(call, value, ks.errors.OptionError)
    assert "ks.schedule" in refused(lambda v: ks.draw(GRAPH, schedule=v), value, ks.ArgumentError).help
    if value != 5:
        for name in ("rank", "around", "hops", "box_limit"):
            error = refused(lambda v, name=name: ks.draw(GRAPH, **{name: v}), value, ks.errors.OptionError)
            assert error.message.startswith(f"{name}=") and "whole number" in error.help


def test_lint_and_run_say_what_they_take() -> None:
    """Codes are several, options values by rule, inputs arrays by name."""
    for name in ("select", "ignore"):
        error = refused(lambda v, name=name: ks.lint(GRAPH, **{name: v}), 5, ks.errors.OptionError)
        assert error.message == f"{name}=5" and "several codes" in error.help
    for value in (5, "x", [1], np.array([1, 2])):
        assert "by rule" in refused(lambda v: ks.lint(GRAPH, options=v), value, ks.errors.OptionError).help
        assert "by tensor name" in refused(lambda v: ks.run(GRAPH, v), value, ks.InputError).help


def test_more_than_there_can_be() -> None:
    """Numbers of buffers that no memory has, and callables whose parameters Python does not know."""
    refused(lambda v: ks.rebuffer(GRAPH, v), 10**30, ks.errors.OptionError)
    for call in (ks.trace, ks.lint):
        refused(call, type, ks.ArgumentError)
    for name in ("select", "ignore"):
        refused(lambda v, name=name: ks.lint(GRAPH, **{name: v}), None, ks.errors.OptionError)
