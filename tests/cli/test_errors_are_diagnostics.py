"""What ends a trace or an import is told as a finding is: with code, place and help, in every format."""

from __future__ import annotations

import json

import pytest

KERNEL = """
@ks.launch("s", x=ks.hbm((8, 4), "f32"), o=ks.hbm((8, 4), "f16"))
@ks.kernel
def k(x, o):
    {}
"""
#: By what is wrong: the file, the code, and the line and column at fault.
BROKEN = {
    "dtype": (KERNEL.format("tl.store(o[:, :], tl.load(x[:, :]))"), "KE102", 8, 5),
    "shape": (KERNEL.format("y = tl.load(x[:, :]) + tl.load(o[0:3, :])"), "KE101", 8, 9),
    "name": (KERNEL.format("y = tl.no_such_name"), "KE108", 8, 9),
    "value": (KERNEL.format("float(tl.load(x[:, :]))"), "KE107", 8, 5),
    "raises": (KERNEL.format("raise ValueError('too odd')"), "KE504", 8, 5),
    "launch": ('\nx = ks.hbm((0,), "f32")\n', "KE101", 5, 5),
    "arguments": (KERNEL.format("pass").replace("k(x, o)", "k(x, o, z)"), "KE105", 5, 2),
    "syntax": ("\ndef broken(ü:\n    pass\n", "KE502", 5, 11),
    "indentation": ("\ndef broken():\npass\n", "KE502", 6, 1),
    "import": ("\nimport not_a_module_at_all\n", "KE502", 5, 1),
    "exit": ("\nimport argparse\nargparse.ArgumentParser().parse_args(['--wrong'])\n", "KE502", 6, 1),
    "neighbour": ("\nimport other\n", "KE502", 1, 1),
}


@pytest.fixture
def broken(write, stale, tmp_path):
    """A folder with a file for each mistake, and one with an ordinary finding."""
    (tmp_path / "other.py").write_text("1 / 0\n", encoding="utf-8")
    for name, (text, *_) in BROKEN.items():
        write(text, f"{name}.py")
    return tmp_path


def lines_of(out: str, form: str) -> dict[str, tuple[str, int | None, int | None]]:
    """By file the code, line and column of what a format tells of it."""
    if form == "json":
        parts = json.loads(out)
        told = [(r["title"], f) for part in ("reports", "not_linted") for r in parts[part] for f in r["findings"]]
        return {
            title.partition(".")[0]: (
                f["code"],
                *((p[0]["line"], p[0]["column"]) if (p := f["locations"]) else (None, None)),
            )
            for title, f in told
        }
    if form == "sarif":
        found = {}
        for result in json.loads(out)["runs"][0]["results"]:
            (place,) = result["locations"]
            region = place.get("physicalLocation", {}).get("region", {})
            title = result["properties"]["launches"][0].partition(".")[0]
            found[title] = (result["ruleId"], region.get("startLine"), region.get("startColumn"))
        return found
    raise AssertionError(form)


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_every_error_has_its_code_and_place(kernscope, broken, form):
    """In one run over all the files: none hides another, nor the findings of the clean ones."""
    done = kernscope("lint", *sorted(p.name for p in broken.glob("*.py")), "--output-format", form, "--jobs", 0)
    told = lines_of(done.out, form)
    assert done.status == 2 and "Traceback" not in done.err
    assert any(code == "KS201" for code, *_ in told.values())
    for name, (_, code, line, column) in BROKEN.items():
        assert told[name][0] == code, name
        assert told[name][1:] == (line, column), name


@pytest.mark.parametrize("form", ["full", "concise", "github"])
def test_every_error_is_a_line_of_text_with_its_place(kernscope, broken, form):
    """Paths are relative to the current folder, whatever was given."""
    done = kernscope("lint", broken, "--output-format", form, "--jobs", 0)
    assert done.status == 2 and "KS201" in done.out and str(broken) not in done.out
    for name, (_, code, line, column) in BROKEN.items():
        file = "other.py" if name == "neighbour" else f"{name}.py"
        expected = {
            "full": f"--> {file}:{line}:{column}\n",
            "concise": f"\n{file}:{line}:{column}: error[{code}]: ",
            "github": f"::error file={file},line={line},col={column}",
        }
        assert expected[form] in "\n" + done.out, name
    if form == "full":
        assert done.out.count("= help: ") >= len(BROKEN) and "^ here" in done.out


@pytest.mark.parametrize("command", ["trace", "schedule", "run", "draw", "report"])
def test_other_commands_tell_an_error_in_the_same_form(kernscope, broken, command):
    """On standard error, with the source line underlined."""
    done = kernscope(command, "dtype.py")
    assert done.status == 2 and done.err.startswith("error[KE102]: store of f32 into o") and "^^^ here" in done.err
    assert " --> dtype.py:8:5\n" in done.err and "= help: " in done.err


def test_paths_that_lead_nowhere_take_nothing_from_the_others(kernscope, stale, tmp_path):
    """A missing file, an empty folder and a name that is none are errors of their own."""
    (tmp_path / "empty").mkdir()
    done = kernscope("lint", "nowhere.py", "empty", "a/b:c", stale, "--output-format", "concise")
    assert done.status == 2 and "KS201" in done.out
    assert [line.split(":")[0] for line in done.out.splitlines() if "KE502" in line] == ["empty", "a/b", "nowhere.py"]


def test_a_wrong_rule_is_told_once(kernscope, stale):
    """It is wrong whatever is linted."""
    done = kernscope("lint", stale, "--select", "KS999")
    assert done.status == 2 and done.out == "" and done.err.count("KS999") == 1 and "error[KE506]" in done.err


def test_library_paths_are_never_the_place(kernscope, broken):
    """A file that ends its own import through a library is blamed at its own line."""
    done = kernscope("lint", "exit.py", "--output-format", "concise")
    assert done.out.startswith("exit.py:6:1: error[KE502]: ") and "argparse.py" not in done.out
