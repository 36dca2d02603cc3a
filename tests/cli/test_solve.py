"""Task graphs in standard formats: what is read is what the file says, and every fault of a file is one clear error."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernscope as ks
from kernscope.scheduler.task_files.reading import read_task_graph

#: Fisher and Thompson's (1963) shop of six jobs and six machines, whose optimum is 55.
FT06 = """\
# ft06
6 6
2 1 0 3 1 6 3 7 5 3 4 6
1 8 2 5 4 10 5 10 0 10 3 4
2 5 3 4 5 8 0 9 1 1 4 7
1 5 0 5 2 5 3 3 4 8 5 9
2 9 1 3 4 5 5 4 0 3 3 1
1 3 3 3 5 9 0 10 4 4 2 1
"""
TAILLARD = """\
Nb of jobs, Nb of Machines, Time seed, Machine seed, Upper bound, Lower bound
           2           3   840612802   398197754        1231        1005
Times
 94  66  10
 74  31  88
Machines
  3   1   2
  1   3   2
"""
STG = """\
3
0 0 0
1 4 1 0
2 3 1 0   # waits for the entry
3 2 2 1 2
4 0 1 3
"""


@pytest.fixture
def written(tmp_path: Path):  # type: ignore[no-untyped-def]
    """Writes a file, and returns its path."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_job_shop_is_solved(written, kernscope) -> None:  # type: ignore[no-untyped-def]
    """Six jobs of six operations in chains; the optimum of 55 is found and proved, and the JSON says the same."""
    graph = read_task_graph(written("ft06.txt", FT06))
    assert graph.engine[:6].tolist() == [2, 0, 1, 3, 5, 4] and graph.durations[:6].tolist() == [1, 3, 6, 7, 3, 6]
    assert graph.edges.tolist() == [[6 * job + k, 6 * job + k + 1] for job in range(6) for k in range(5)]
    path = written("ft06.txt", FT06)
    assert kernscope("solve", str(path)).out == (
        "ft06.txt: job shop, 6 jobs, 6 machines, 36 tasks, 30 edges\n"
        "  makespan  55, proved optimal\n"
        "  bound     55  refuted makespans\n"
    )
    document = json.loads(kernscope("solve", str(path), "--json").out)
    assert (document["makespan"], document["bound"], document["proved_optimal"]) == (55, 55, True)
    start = np.array([task["start"] for task in document["tasks"]])
    end = np.array([task["end"] for task in document["tasks"]])
    assert np.array_equal(end - start, graph.durations) and end.max() == 55
    assert np.all(end[graph.edges[:, 0]] <= start[graph.edges[:, 1]])
    for machine in range(6):
        mine = np.flatnonzero(graph.engine == machine)
        mine = mine[np.argsort(start[mine])]
        assert np.all(end[mine][:-1] <= start[mine][1:])


def test_taillards_form_is_read(written) -> None:  # type: ignore[no-untyped-def]
    """Times by job, machines from 1 in the same places."""
    graph = read_task_graph(written("tai.txt", TAILLARD))
    assert graph.durations.tolist() == [94, 66, 10, 74, 31, 88]
    assert graph.engine.tolist() == [2, 0, 1, 0, 2, 1]
    assert graph.edges.tolist() == [[0, 1], [1, 2], [3, 4], [4, 5]]


def test_a_standard_task_graph_is_solved(written, kernscope) -> None:  # type: ignore[no-untyped-def]
    """On one processor its tasks run in a row, on two the first two at once."""
    path = written("a.stg", STG)
    assert "makespan  9, proved optimal" in kernscope("solve", str(path), "--processors", "1").out
    assert "makespan  6, proved optimal" in kernscope("solve", str(path), "--processors", "2").out
    graph = read_task_graph(path, processors=2)
    assert graph.engine.tolist() == [-1, 0, 0, 0, -1] and graph.channels.tolist() == [2]
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 3], [2, 3], [3, 4]]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "", "the file ends where the number of jobs should be"),
        ("a.txt", "2 2\n0 1 1 2\n", "the file ends where a machine should be"),
        ("a.txt", "1 2\n0 1 2 2\n", "line 2: a machine is 2, not from 0 to 1"),
        ("a.txt", "1 2\n0 1 x 2\n", "line 2: 'x' where a machine should be"),
        ("a.txt", "1 1\n0 -3\n", "line 2: a time is -3, not from 0 to"),
        ("a.txt", "1 1\n0 3\n7\n", "line 3: '7' after all that the file has announced"),
        ("a.txt", "1000001 1\n", "the number of jobs is 1000001"),
        ("a.txt", f"1 1\n0 {'9' * 30}\n", "not from 0 to"),
        ("a.txt", "a b\n2 3\nTimes\n1 2 3\n", "Times without Machines"),
        ("a.txt", TAILLARD.replace("  3   1   2", "  0   1   2"), "a machine is 0, not from 1 to 3"),
        ("a.stg", "1\n0 0 0\n2 4 1 0\n2 0 1 1\n", "line 3: the number 1 of the next task is 2"),
        ("a.stg", "1\n0 0 0\n1 4 1 9\n2 0 1 1\n", "line 3: a task is 9, not from 0 to 2"),
    ],
)
def test_a_file_that_is_none_is_told(written, name: str, text: str, message: str) -> None:  # type: ignore[no-untyped-def]
    """With the line, what should stand there, and what does."""
    with pytest.raises(ks.TaskFileError) as raised:
        read_task_graph(written(name, text), processors=2 if name.endswith("stg") else None)
    assert message in str(raised.value)


@given(text=st.text(alphabet="0123456789 -x\n#TimesMachines", max_size=60), stg=st.booleans())
@settings(max_examples=200, deadline=None)
def test_no_text_is_a_traceback(tmp_path_factory: pytest.TempPathFactory, text: str, stg: bool) -> None:
    """Whatever the text, there is a graph that can be checked, or one error of this kind."""
    path = tmp_path_factory.getbasetemp() / ("any.stg" if stg else "any.txt")
    path.write_text(text, encoding="utf-8")
    try:
        graph = read_task_graph(path, processors=1 if stg else None)
    except ks.TaskFileError:
        return
    assert len(graph.engine) == len(graph) and (not len(graph.edges) or graph.edges.max() < len(graph))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.txt",), "No such file"),
        (("a.stg",), "a standard task graph without --processors"),
        (("a.txt", "--processors", "2"), "--processors for a job shop, standard form"),
        (("a.txt", "--time-limit", "0"), "time limit"),
    ],
)
def test_mistakes_on_the_command_line_are_one_line(  # type: ignore[no-untyped-def]
    written, kernscope, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    """Exit status 2, what is wrong, and help; no traceback."""
    written("a.stg", STG)
    written("a.txt", FT06)
    done = kernscope("solve", str(tmp_path / arguments[0]), *arguments[1:])
    assert done.status == 2
    assert message in done.err and "Traceback" not in done.err


def test_edges_that_close_a_cycle_are_a_deadlock(written, kernscope) -> None:  # type: ignore[no-untyped-def]
    """Exit status 1, as of every deadlock, and the cycle."""
    path = written("cycle.stg", "1\n0 0 1 1\n1 4 1 0\n2 0 1 1\n")
    done = kernscope("solve", str(path), "--processors", "2")
    assert done.status == 1
    assert "the edges close a cycle: 1 after 0 after 1" in done.err.replace("0 after 1 after 0", "1 after 0 after 1")


PROJECT = """\
************************************************************************
jobs (incl. supersource/sink ):  5
RESOURCES
  - renewable                 :  2   R
  - nonrenewable              :  0   N
  - doubly constrained        :  0   D
************************************************************************
PRECEDENCE RELATIONS:
jobnr.    #modes  #successors   successors
   1        1          3           2   3   4
   2        1          1           5
   3        1          1           5
   4        1          1           5
   5        1          0
************************************************************************
REQUESTS/DURATIONS:
jobnr. mode duration  R 1  R 2
------------------------------------------------------------------------
  1      1     0       0    0
  2      1     3       2    0
  3      1     4       2    1
  4      1     5       1    1
  5      1     0       0    0
************************************************************************
RESOURCEAVAILABILITIES:
  R 1  R 2
    4    1
************************************************************************
"""


def test_a_project_is_solved(written, kernscope) -> None:  # type: ignore[no-untyped-def]
    """Jobs 3 and 4 both take all of the second resource, and so run one after the other: 9, which is proved."""
    path = written("a.sm", PROJECT)
    graph = read_task_graph(path)
    assert graph.demand is not None and graph.demand.tolist() == [[0, 0], [2, 0], [2, 1], [1, 1], [0, 0]]
    assert graph.capacity is not None and graph.capacity.tolist() == [4, 1]
    assert kernscope("solve", str(path)).out == (
        "a.sm: project, 2 resources, 5 tasks, 6 edges\n  makespan  9, proved optimal\n  bound     9  resource 2\n"
    )
    done = kernscope("solve", str(path), "--policy", "optimal")
    assert done.status == 2 and "--policy optimal of a project" in done.err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("nonrenewable              :  0", "nonrenewable              :  1", "only renewable ones are known"),
        ("  3      1     4       2", "  3      1     4       5", "job 3 takes 5 of resource 1, of which there is 4"),
        (
            "   2        1          1           5",
            "   2        2          1           5",
            "one mode is 2, not from 1 to 1",
        ),
        ("jobs (incl.", "works (incl.", "no line says the number of jobs"),
        ("REQUESTS", "QUESTS", "no part REQUESTS/DURATIONS"),
        ("    4    1\n", "    4\n", "the file ends where how much there is of a resource should be"),
    ],
)
def test_a_project_that_is_none_is_told(written, old: str, new: str, message: str) -> None:  # type: ignore[no-untyped-def]
    """With the line, what should stand there, and what does."""
    assert old in PROJECT
    with pytest.raises(ks.TaskFileError) as raised:
        read_task_graph(written("a.sm", PROJECT.replace(old, new)))
    assert message in str(raised.value)
