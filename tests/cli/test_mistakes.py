"""A user's mistake on the command line: exit status 2, one clear error with a help line, never a traceback."""

from __future__ import annotations

import os

import pytest

MISTAKES = [
    (("trace", "nowhere.py"), "no file 'nowhere.py'"),
    (("trace", "no_such_module:kernel"), "no module 'no_such_module'"),
    (("trace", "a/b:c"), "no file 'a/b:c'"),
    (("trace", "mine.py::plus_oen"), "did you mean 'plus_one'?"),
    (("trace", "mine.py", "--launch", "smal"), "did you mean 'small'?"),
    (("trace", "mine.py", "--arg", "amuont=1"), "did you mean 'amount'?"),
    (("trace", "mine.py", "--arg", "amount"), "write name=value"),
    (("trace", "mine.py", "--arg", "amount=1", "--arg", "amount=2"), "given twice"),
    (("trace", "mine.py", "--arg", "amount=$("), "no Python literal"),
    (("trace", "mine.py", "--arg", "x=f33[2,2]"), "unknown dtype 'f33'"),
    (("trace", "mine.py", "--arg", "x=q99[2,2]"), "it can be f32, f16, "),
    (("trace", "mine.py", "--arg", "x=f32[0,2]"), "has no elements"),
    (("trace", "mine.py", "--arg", "x=f32[8,8]"), "shape"),
    (("trace", "mine.py", "--machine", "ahbm-pee"), "did you mean 'ahbm-pe'? (a file's name ends in .toml)"),
    (("schedule", "mine.py", "--set", "gemm.row=1"), "did you mean 'gemm.rows'?"),
    (("schedule", "mine.py", "--set", "gemm.rows"), "write field=value"),
    (("schedule", "mine.py", "--set", "gemm.rows=-1"), "gemm.rows"),
    (("run", "mine.py", "--inputs", "nothing.npz"), "no file 'nothing.npz'"),
    (("run", "mine.py", "--inputs", "mine.py"), "no .npz file"),
    (("run", "mine.py", "-o", "no/folder/out.npz"), "no folder"),
    (("draw", "mine.py", "-o", "picture.gif"), "gif"),
    (("draw", "mine.py", "-o", "no/folder/picture.svg"), "no/folder"),
    (("report", "mine.py", "-o", "no/folder/page.html"), "no/folder"),
    (("explain", "KS210"), "did you mean 'KS20"),
    (("machine", "nothing.toml"), "nothing.toml"),
    (("lint", "mine.py", "--select", "KS999"), "KS999"),
    (("trace", "mine.py", "-o", "no/folder/g.ksg"), "cannot write"),
]


@pytest.mark.parametrize(("arguments", "says"), MISTAKES, ids=[" ".join(a) for a, _ in MISTAKES])
def test_one_clear_error(kernscope, good, arguments, says):
    """The error says what was wrong and what to do."""
    done = kernscope(*arguments)
    assert done.status == 2, done
    assert says in done.err and "help:" in done.err and "Traceback" not in done.err


@pytest.mark.parametrize(
    "arguments",
    [("trace",), ("schedul", "mine.py"), ("trace", "mine.py", "--lunch", "x"), ("trace", "mine.py", "--ranks", "0")],
)
def test_usage_errors(kernscope, good, arguments):
    """Unknown commands and options, missing and impossible values are refused by name."""
    done = kernscope(*arguments)
    assert done.status == 2 and "Error" in done.err and "Traceback" not in done.err


@pytest.mark.parametrize(("arguments", "near"), [
    (("lint", "mine.py", "--output-format", "jsn"), "json"),
    (("lint", "mine.py", "--fail-on", "eror"), "error"),
    (("run", "mine.py", "--order", "lzy"), "lazy"),
    (("schedule", "mine.py", "--policy", "lits"), "list"),
    (("schedule", "mine.py", "--effort", "hihg"), "high"),
    (("draw", "mine.py", "--fold", "scop"), "scope"),
    (("fit", "mine.py", "--param", "n", "--range", "1:2", "--goal", "memroy"), "memory"),
])  # fmt: skip
def test_a_misspelt_value_has_the_nearest(kernscope, good, arguments, near):
    """Of options that take one of some names; one that is like none of them is told all."""
    done = kernscope(*arguments)
    assert done.status == 2 and f"Did you mean '{near}'?" in done.err, done
    done = kernscope(*arguments[:-1], "xyzzy")
    assert done.status == 2 and "is not one of" in done.err and "Did you mean" not in done.err, done


def test_a_file_with_several_kernels_needs_a_name(kernscope, write):
    """The list of them is printed; imported kernels do not count."""
    path = write(
        """
        from kernscope.kernels.softmax import softmax
        @ks.kernel
        def one(x): pass
        @ks.kernel
        def two(x): pass
        """
    )
    done = kernscope("trace", path)
    assert done.status == 2 and "has 2 kernels: one, two" in done.err


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("def broken(:", "SyntaxError"),
        ("import not_a_module_at_all", "ModuleNotFoundError"),
        ("raise SystemExit(0)", "SystemExit"),
    ],
)
def test_a_file_that_cannot_be_imported(kernscope, write, body, says):
    """The error is the author's, with the author's line."""
    done = kernscope("trace", write(body))
    assert done.status == 2 and says in done.err and "mine.py:4" in done.err and "Traceback" not in done.err


@pytest.mark.parametrize("exception", ["ValueError('too odd')", "SystemExit(3)", "RecursionError('deep')"])
def test_a_kernel_that_raises(kernscope, write, exception):
    """It is shown at the author's line, with the author's calls that led there."""
    path = write(
        f"""
        def helper():
            raise {exception}

        @ks.launch("small", x=ks.hbm((4, 4), "f32"))
        @ks.kernel
        def fails(x):
            helper()
        """
    )
    for command in ("trace", "lint", "report"):
        done = kernscope(command, path)
        told = done.out if command == "lint" else done.err
        assert done.status == 2, command
        assert f"error[KE504]: kernel fails raised {exception.partition('(')[0]}" in told
        assert " --> mine.py:6:5\n" in told and "called from mine.py:11:5 in fails" in told
        assert "recorder.py" not in done.out + done.err


def test_a_reference_that_raises(kernscope, write):
    """Its error is shown with the author's frames, as a kernel's is; it is no mismatch."""
    path = write(
        """
        def wrong(x):
            raise ValueError("too odd")

        @ks.launch("small", x=ks.hbm((4, 4), "f32"), o=ks.hbm((4, 4), "f32"), reference=wrong)
        @ks.kernel
        def copies(x, o):
            tl.store(o[:, :], tl.load(x[:, :]))
        """
    )
    for command in ("run", "report"):
        done = kernscope(command, path)
        assert done.status == 2 and "the reference of copies raised ValueError: too odd" in done.err, command
        assert " --> mine.py:6:5\n" in done.err or "too odd (mine.py:6)" in done.err
        assert "Traceback" not in done.err and "face/api.py" not in done.err
    assert path.with_name("copies.html").exists(), "the rest of the report is not lost"


def test_a_kernel_that_recurses_for_ever(kernscope, write):
    """The line that calls itself is shown once, and what called it first."""
    path = write(
        """
        @ks.launch("small", x=ks.hbm((4, 4), "f32"))
        @ks.kernel
        def deep(x):
            def again():
                return again()
            again()
        """
    )
    done = kernscope("trace", path)
    assert done.status == 2 and " --> mine.py:9:" in done.err and "called from mine.py:10:5 in deep" in done.err
    assert len(done.err.splitlines()) < 20


def test_a_mistake_in_a_launch_names_its_line(kernscope, write):
    """What `ks.hbm` and `ks.launch` refuse while the file is imported is refused with the author's line."""
    path = write(
        """
        @ks.launch("small", x=ks.hbm((0, 4), "f32"))
        @ks.kernel
        def kernel(x): pass
        """
    )
    done = kernscope("trace", path)
    assert done.status == 2 and "mine.py:5" in done.err and done.err.count("-->") == 1


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"\x93NUMPY"], ids=["empty", "cut", "npy"])
def test_inputs_that_are_no_archive(kernscope, good, tmp_path, content):
    """A damaged file is refused in one line, and nobody is told to unpickle it."""
    (tmp_path / "bad.npz").write_bytes(content)
    done = kernscope("run", good, "--inputs", "bad.npz")
    assert done.status == 2 and "no .npz file" in done.err and "pickle" not in done.err


def test_debug_shows_the_traceback(kernscope, good):
    """``--debug`` prints it before the error."""
    done = kernscope("--debug", "trace", good, "--launch", "none")
    assert done.status == 2 and "Traceback" in done.err and "LaunchError" in done.err


def test_one_bad_file_does_not_hide_the_findings_of_the_others(kernscope, stale, write, tmp_path):
    """``lint`` goes on after a file that cannot be imported, prints what it found, and exits 2."""
    write("1 / 0", "broken.py")
    done = kernscope("lint", tmp_path)
    assert done.status == 2 and "KS201" in done.out and "ZeroDivisionError" in done.out


def test_a_deadlock_under_the_policy_asked_for(kernscope, write):
    """Exit status 1 and the cycle of lines; without a policy the ladder has rows that say so."""
    path = write(
        """
        @ks.launch("two", ranks=2, o=ks.hbm((2, 16), "f32"))
        @ks.kernel
        def both_wait(o):
            tile = tl.recv("prev", (1, 16), tl.float32)
            tl.send("next", tile)
            tl.store(o[tl.program_id(0) : tl.program_id(0) + 1, :], tile)
        """
    )
    asked = kernscope("schedule", path, "--policy", "lazy")
    assert asked.status == 1 and "mine.py:9" in asked.err and "\n8 |" in asked.err and "\n9 |" in asked.err
    ladder = kernscope("schedule", path)
    assert ladder.status == 0 and ladder.out.count("deadlock") >= 4


@pytest.mark.parametrize("seed", ["-1", "-9223372036854775809"])
def test_a_seed_below_zero(kernscope, good, seed):
    """One line, exit 2: numpy's own generator takes no such seed."""
    done = kernscope("run", good, "--seed", seed)
    assert done.status == 2 and done.out == ""
    assert done.err.splitlines()[0] == f"error[KE403]: the seed is {seed}"


def test_tensors_beyond_this_machines_memory(kernscope, write):
    """``run`` refuses them before it asks the system for them; what needs no tensor's memory goes on."""
    path = write(
        """
        def reference(x):
            return {"o": x}


        @ks.launch("huge", x=ks.hbm((8,), "f32"), o=ks.hbm((1 << 42,), "f32"), reference=reference)
        @ks.launch("huge_input", x=ks.hbm((1 << 42,), "f32"), o=ks.hbm((8,), "f32"), reference=reference)
        @ks.kernel
        def copy(x, o):
            tl.store(o[0:8], tl.load(x[0:8]))
        """
    )
    for launch, largest in (("huge", "'o'"), ("huge_input", "'x'")):
        done = kernscope("run", path, "--launch", launch)
        assert done.status == 2 and done.out == ""
        assert done.err.startswith(
            "error[KE406]: the HBM tensors of copy take 17,592,186,044,448 B (the largest, " + largest
        )
        told = kernscope("report", path, "--launch", launch, "-o", "huge.html")
        assert told.status in (0, 1) and "not executed: the HBM tensors" in told.out


def test_a_reference_that_is_given_no_array_is_not_blamed(kernscope, write):
    """It cannot know what a tensor's description is: the help names the argument."""
    path = write(
        """
        def fills(xs, o):
            return {"o": xs[0][:] + 1}

        @ks.launch("small", xs=[ks.hbm((4,), "f32")], o=ks.hbm((4,), "f32"), reference=fills)
        @ks.kernel
        def zero(xs, o):
            tl.store(o[:], tl.zeros((4,), "f32"))
        """
    )
    done = kernscope("run", path)
    assert done.status == 2 and "the reference of zero raised TypeError" in done.err
    assert "it was called with xs=[hbm(" in done.err and "reference's own" not in done.err


def test_an_exception_that_cannot_be_written_is_the_authors(kernscope, write):
    """One whose ``__str__`` raises is named by its class, at its line."""
    path = write(
        """
        class Odd(Exception):
            def __str__(self):
                raise RuntimeError("no")

        @ks.launch("s", x=ks.hbm((8,), "f32"))
        @ks.kernel
        def k(x):
            raise Odd
        """
    )
    done = kernscope("lint", path)
    assert done.status == 2 and "error[KE504]: kernel k raised Odd\n" in done.out and "mine.py:12:5" in done.out, done


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="FIFOs")
@pytest.mark.parametrize("command", ["lint", "run", "schedule", "trace"])
def test_what_is_no_regular_file_is_not_opened(kernscope, tmp_path, command):
    """A FIFO would keep the command waiting for ever; a link to nothing is told as one."""
    os.mkfifo(tmp_path / "pipe.py")
    done = kernscope(command, "pipe.py")
    assert done.status == 2 and "'pipe.py' is no regular file" in done.out + done.err
    os.symlink("nowhere.py", tmp_path / "dangling.py")
    done = kernscope(command, "dangling.py")
    assert done.status == 2 and "'dangling.py' is a link to 'nowhere.py', and nothing is there" in done.out + done.err


def test_a_null_byte_is_told_at_its_line(kernscope, write):
    """Python names neither the file nor the line; without a place an annotation would be lost."""
    write('one = 1\ntwo = "\0"\n')
    done = kernscope("lint", "mine.py", "--output-format", "github")
    assert done.status == 2 and "::error file=mine.py,line=5," in done.out, done


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        (["schedule", "mine.py"], "--policy", "lazy"),
        (["lint", "mine.py"], "--output-format", "json"),
        (["report", "mine.py"], "-o", "page.html"),
        (["draw", "mine.py"], "--machine", "ahbm-pe"),
        (["machine", "fit", "m.toml", "times.csv"], "-o", "new.toml"),
    ],
)
def test_an_option_that_counts_once_is_given_once(kernscope, good, command, option, value):
    """Not the last one taken in silence; those that may be repeated and switches are no mistake."""
    done = kernscope(*command, option, value, option, value)
    assert done.status == 2 and "is given 2 times" in done.err
    twice = ["--set", "gemm.rows=32", "--set", "gemm.cols=32", "-q", "-q"]
    assert kernscope("lint", good, *twice, "--exit-zero").status == 0
