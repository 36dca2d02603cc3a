"""A report page names files from the root of their project on: nothing of the machine that it was made on is in it."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import kernscope as ks
from kernscope.backends.report.paths import PagePaths

SOURCE = """
import kernscope as ks
from kernscope import tl


@ks.kernel
def stuck(o: ks.HbmTensor) -> None:
    tl.exp(tl.load(o[:, :]))
    here = tl.recv("prev", (8, 8), tl.float32)
    tl.send("next", here)
    tl.store(o[:, :], here)
"""


def written(folder: Path, below: str) -> Path:
    """A file of a project in a folder."""
    file = folder / below
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(SOURCE, encoding="utf-8")
    return file


@pytest.mark.parametrize("here", ["outside", "project", "subfolder"])
def test_no_folder_of_the_machine_is_in_a_page(here: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Source, findings, deadlocks and the comparison: a page made anywhere says ``ops/stuck.py``, and is the same."""
    project = tmp_path / "somebody" / "project"
    file = written(project, "ops/stuck.py")
    (project / "pyproject.toml").touch()
    monkeypatch.chdir({"outside": tmp_path, "project": project, "subfolder": file.parent}[here])
    kernel = runpy.run_path(str(file))["stuck"]
    graph = ks.trace(kernel, ks.hbm((8, 8), "f32"), ranks=2)
    data = ks.report(graph, "page.html", against=ks.trace(kernel, ks.hbm((8, 8), "f32"), ranks=3))
    assert data.best is None
    assert len(data.lint) > 0
    text = Path("page.html").read_text(encoding="utf-8")
    assert "somebody" not in text
    assert str(tmp_path) not in text
    assert "ops/stuck.py:8" in text
    assert "ops/ops" not in text
    assert ">ops/stuck.py<" in text


def test_a_file_is_named_from_its_project_on(tmp_path: Path) -> None:
    """Below the nearest marker; from the package on where it is installed; by its name alone where there is neither;
    and what is no path stays as it is."""
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    names = PagePaths.of(())
    assert names.name(str(project / "a" / "b.py")) == "a/b.py"
    assert names.name(str(project / "lib" / "site-packages" / "pack" / "c.py")) == "pack/c.py"
    assert names.name("/no/such/folder/k.py") == "k.py"
    assert names.name("<string>") == "<string>"
    assert names.name("kernels/k.py") == "kernels/k.py"


def test_a_text_is_left_alone_but_for_the_files(tmp_path: Path) -> None:
    """A path that only ends like one of the files, or begins with it, is not touched."""
    file = tmp_path / "k.py"
    names = PagePaths.of([str(file), "<string>"])
    assert names.in_text(f"--> {file}:3:1, see {file}") == "--> k.py:3:1, see k.py"
    assert names.in_text(f"{tmp_path}/data.npy") == "data.npy"
    for text in ("<string>:1", f"/other{file}:3", "k.py:3", "a/k.py:3"):
        assert names.in_text(text) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("it hangs (/srv/somebody/.venv/bin/dot cannot)", "it hangs (dot cannot)"),
        ("cannot open '/data/set one/x.npy'", "cannot open 'set one/x.npy'"),
        (r"no C:\Users\somebody\x.npy", "no x.npy"),
        ("of q/k/v, 3 / 4 and ~/x", "of q/k/v, 3 / 4 and ~/x"),
        ("https://example.org/a/b and </title></svg>", "https://example.org/a/b and </title></svg>"),
        ("/x", "/x"),
    ],
)
def test_of_other_programs_paths_the_name_is_left(text: str, said: str) -> None:
    """What a renderer or a reference function says keeps no folder; what only looks like a path is left alone."""
    assert PagePaths.of(()).in_note(text) == said
