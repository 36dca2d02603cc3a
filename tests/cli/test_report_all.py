"""``kernscope report`` of a folder: a page for every launch, and an index that says what matters first."""

from __future__ import annotations

import html
import os
import re
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

KERNELS = """
    def plus_one(x):
        return {"o": x + 1}

    def plus_two(x):
        return {"o": x + 2}

    @ks.launch("right", x=ks.hbm((16, 16), "f32"), o=ks.hbm((16, 16), "f32"), reference=plus_one)
    @ks.launch("wrong", x=ks.hbm((16, 16), "f32"), o=ks.hbm((16, 16), "f32"), reference=plus_two)
    @ks.launch("long", x=ks.hbm((16, 4096), "f32"), o=ks.hbm((16, 4096), "f32"), reference=plus_one)
    @ks.kernel
    def add(x, o):
        tl.store(o, tl.load(x) + 1.0)
"""
OTHERS = """
    import os

    @ks.launch("dies", o=ks.hbm((16,), "f32"))
    @ks.kernel
    def dying(o):
        os._exit(3)

    @ks.launch("raises", o=ks.hbm((16,), "f32"))
    @ks.kernel
    def raising(o):
        raise ValueError("no <b>such</b> thing")

    @ks.launch("has no file", o=ks.hbm((16,), "f32"))
    @ks.kernel
    def reading(o):
        open(os.path.abspath("missing.txt"))

    @ks.kernel
    def idle(o):
        pass
"""


@pytest.fixture
def folder(write, tmp_path):
    (tmp_path / "kernels" / "deep").mkdir(parents=True)
    write(KERNELS, "kernels/deep/adding.py")
    write(OTHERS, "kernels/others.py")
    return tmp_path / "kernels"


def index(folder: Path) -> list[tuple[str, str]]:
    """The rows of an index: the text of each, and where it leads (empty: nowhere)."""
    text = (folder / "index.html").read_text(encoding="utf-8")
    rows = re.findall(r"<tr class=\"[a-z]*\">(.*?)</tr>", text, re.DOTALL)
    links = [re.search(r'href="([^"#]*)"', row) for row in rows]
    plain = [html.unescape(re.sub(r"<[^>]*>", " ", row)) for row in rows]
    return [(said, unquote(link[1]) if link else "") for said, link in zip(plain, links, strict=True)]


def test_every_launch_has_a_page_and_what_is_wrong_comes_first(kernscope, folder):
    """Failures, then what differs, then by the time above the bound; each row leads to its own page."""
    done = kernscope("report", folder, "-o", "pages")
    rows = index(Path("pages"))
    assert done.status == 2
    assert [said.split()[0] for said, _ in rows] == [
        *("others.py::dying", "others.py::raising", "others.py::reading", "add:wrong", "add:long", "add:right")
    ]
    pages = [page for _, page in rows if page]
    assert len(set(pages)) == 3 and all(page.startswith("deep/") for page in pages)
    for said, page in rows[3:]:
        assert f"<title>{said.split()[0]}</title>" in Path("pages", page).read_text(encoding="utf-8")
    assert "DIFFER" in rows[3][0] and "agree" in rows[4][0]
    assert "exit status 3" in rows[0][0] and "no <b>such</b> thing" in rows[1][0]
    assert "3 launches, 3 failures to report, 1 with something wrong" in done.out
    assert "exit status 3" in done.err and "kernel idle is not reported: it has no launch" in done.err


@pytest.mark.skipif(sys.platform == "darwin", reason="file names are Unicode there")
def test_a_file_whose_name_is_no_text_has_a_page(kernscope, write):
    """Names are bytes on Linux: each has a page that a browser finds."""
    folder = Path("odd")
    folder.mkdir()
    shutil.copy(write(KERNELS), os.fsencode(folder) + b"/odd\xff.py")
    done = kernscope("report", folder, "--no-run", "--launch", "right", "-o", "pages")
    assert done.status == 0, done.err
    assert done.out.endswith("and 1 page\n")
    ((_, page),) = index(Path("pages"))
    assert Path("pages", page).is_file()


def test_the_pages_say_nothing_of_where_they_were_made(kernscope, folder, tmp_path):
    """No path of the machine, no script in the index, and links that hold after the folder was moved."""
    kernscope("report", folder, "-o", "pages")
    Path("pages").rename("moved")
    for path in Path("moved").rglob("*.html"):
        assert str(tmp_path) not in path.read_text(encoding="utf-8")
    text = Path("moved", "index.html").read_text(encoding="utf-8")
    assert "<script" not in text and "script-src" not in text and "default-src 'none'" in text
    assert all(not page or Path("moved", page).is_file() for _, page in index(Path("moved")))


@pytest.mark.parametrize(("launch", "status"), [("right", 0), ("wrong", 1)])
def test_the_exit_status_is_that_of_the_worst_launch(kernscope, folder, launch, status):
    """1 where a launch differs from its reference, 0 where all are right; ``--launch`` chooses of every kernel."""
    done = kernscope("report", folder / "deep", "--launch", launch)
    assert done.status == status
    assert [said.split()[0] for said, _ in index(Path("reports"))] == [f"add:{launch}"]


def test_a_file_and_a_saved_graph_are_reported_with_all(kernscope, write):
    """Every launch of a file has its page; of a saved graph there is one, not compared with anything."""
    file = write(KERNELS)
    assert kernscope("report", file, "--all", "--no-run", "-o", "one").status == 0
    assert len(index(Path("one"))) == 3
    assert kernscope("trace", file, "--launch", "right", "-o", "g.ksg").status == 0
    assert kernscope("report", "g.ksg", "--all", "-o", "two").status == 0
    ((said, page),) = index(Path("two"))
    assert "not compared" in said and Path("two", page).is_file()


def test_names_that_look_alike_in_a_file_name_have_pages_of_their_own(kernscope, write):
    """Also names that a page or an address would take for something else."""
    names = ["a b", "a_b", "a/b", "../a", "<i>a", "a#b", "A B"]
    launches = "\n".join(f"    @ks.launch({name!r}, o=ks.hbm((16,), 'f32'))" for name in names)
    body = "    @ks.kernel\n    def fills(o):\n        tl.store(o, tl.full((16,), 1.0, 'f32'))\n"
    kernscope("report", write(f"\n{launches}\n{body}"), "--all", "--no-run", "-o", "pages")
    rows = index(Path("pages"))
    assert len({page.lower() for _, page in rows}) == len(names)
    assert {said.split("mine.py")[0].strip() for said, _ in rows} == {f"fills:{name}" for name in names}
    assert sorted(path.name for path in Path("pages").iterdir()) == sorted(["index.html", *(page for _, page in rows)])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--arg", "tile=4"], "--arg"),
        (["--ranks", "2"], "--ranks"),
        (["--grid", "2"], "--grid"),
        (["--against", "before.ksg"], "--against"),
        (["--against-launch", "small"], "--against-launch"),
        (["--against-arg", "tile=4"], "--against-arg"),
        (["-o", "page.html"], "-o page.html"),
    ],
)
def test_options_of_one_launch_are_refused(kernscope, folder, options, named):
    done = kernscope("report", folder, *options)
    assert done.status == 2 and f"{named} with all launches" in done.err and not Path("reports").exists()


def test_jobs_are_of_many_launches(kernscope, write):
    done = kernscope("report", write(KERNELS), "--launch", "right", "--jobs", "2")
    assert done.status == 2 and "--jobs with one launch" in done.err


def test_a_folder_that_cannot_be_made_is_told_before_any_work(kernscope, folder):
    Path("taken").write_text("")
    done = kernscope("report", folder, "-o", "taken")
    assert done.status == 2 and "cannot write taken" in done.err
