"""Every command takes the saved graph of a front end without scopes, or refuses it by name."""

import frontend
import kernelgen
import pytest

SAVED = "automatic.ksg"


@pytest.fixture(params=[1, 2])
def saved(request, tmp_path):
    frontend.record(kernelgen.random_kernel(4, ranks=request.param)).save(tmp_path / SAVED)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("lint",),
        ("schedule",),
        ("schedule", "--policy", "list"),
        ("draw", "-o", "graph.svg"),
        ("draw", "-o", "graph.dot"),
        ("timeline", "-o", "timeline.json"),
        ("timeline", "-o", "timeline.pftrace"),
        ("report", "-o", "report.html"),
    ],
)
def test_a_command_takes_a_graph_without_scopes(kernscope, saved, arguments):
    """It does its work (1: there are findings), and what it writes is there."""
    command, *options = arguments
    done = kernscope(command, saved / SAVED, *options)
    assert done.status == 0 or (done.status == 1 and command in ("lint", "report"))
    assert done.err == ""
    assert done.out
    if "-o" in options:
        assert (saved / options[-1]).stat().st_size > 0


@pytest.mark.parametrize("buffers", ["2", "1-3"])
def test_buffers_need_scopes(kernscope, saved, buffers):
    """Refused with the error's code; the graph as it is can be scheduled, as the help says."""
    done = kernscope("schedule", saved / SAVED, "--buffers", buffers)
    assert done.status == 2
    assert "error[KE205]" in done.err
    assert "schedule the graph as it is" in done.err
    assert kernscope("schedule", saved / SAVED).status == 0
