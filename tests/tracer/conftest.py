"""Every graph that a test here traces has to hold all invariants."""

from collections.abc import Iterator
from typing import Any

import pytest

import kernscope as ks
from kernscope.ir.verifier.verify import verify


@pytest.fixture(autouse=True)
def verified_traces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`ks.trace` verifies what it returns; nested traces and those of other threads, too."""
    trace = ks.trace

    def checked(*args: Any, **kwargs: Any) -> ks.Graph:
        graph = trace(*args, **kwargs)
        assert verify(graph) == []
        return graph

    monkeypatch.setattr(ks, "trace", checked)
    yield
