"""Writing an output: whole or not at all, what was there stays until then, what is no regular file keeps its kind."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.ir.errors import OutputError
from kernscope.ir.output import open_output, write_output

posix = pytest.mark.skipif(os.name != "posix", reason="devices, FIFOs, limits of file sizes")


@ks.kernel
def copy(x: ks.hbm, o: ks.hbm) -> None:
    tl.store(o[:], tl.load(x[:]))


def graph() -> ks.Graph:
    return ks.trace(copy, ks.hbm((16,), "f32"), ks.hbm((16,), "f32"))


#: Everything of the public interface that writes a file, by the extension of what it writes.
WRITERS: dict[str, Callable[[Path], object]] = {
    ".ksg": lambda path: graph().save(path),
    ".dot": lambda path: ks.draw(graph(), path),
    ".json": lambda path: ks.timeline(ks.schedule(graph()), path),
    ".svg": lambda path: ks.timeline(ks.schedule(graph()), path),
    ".html": lambda path: ks.report(graph(), path),
}


@contextlib.contextmanager
def full_disk(room: int = 100) -> Iterator[None]:
    """No file can be larger than that."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Path]:
    """A folder in which nothing but what is named ``out...`` may be left."""
    yield tmp_path
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(("out", "real"))] == []


@posix
@pytest.mark.parametrize("extension", WRITERS)
def test_what_was_there_stays_where_the_disk_is_full(alone: Path, extension: str) -> None:
    """One error, no part of a file, and the good file of before."""
    path = alone / f"out{extension}"
    path.write_bytes(b"good")
    with full_disk(), pytest.raises(OutputError, match=r"cannot write .*out.* too large") as caught:
        WRITERS[extension](path)
    assert path.read_bytes() == b"good" and caught.value.help


@posix
def test_an_error_of_the_block_leaves_what_was_there(alone: Path) -> None:
    """Whatever it is: the file is renamed after the block has ended well."""
    path = alone / "out"
    path.write_bytes(b"good")
    with pytest.raises(KeyboardInterrupt), open_output(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"good"


@posix
@pytest.mark.parametrize("extension", WRITERS)
def test_a_symbolic_link_stays_one(alone: Path, extension: str) -> None:
    """What it leads to is replaced, whether or not it was there; the file's mode stays."""
    for name, before in (("real", b"old"), ("real new", None)):
        real, link = alone / f"{name}{extension}", alone / f"out {name}{extension}"
        if before is not None:
            real.write_bytes(before)
            real.chmod(0o640)
        link.symlink_to(real.name)
        WRITERS[extension](link)
        assert link.is_symlink() and real.is_file() and not real.is_symlink()
        assert real.stat().st_size > 3 and (before is None or stat.S_IMODE(real.stat().st_mode) == 0o640)


@posix
def test_a_device_and_a_fifo_are_written_through(alone: Path) -> None:
    """They keep being what they are."""
    assert write_output("/dev/null", b"gone") == Path("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(OutputError, match="cannot write /dev/full: no space left on device"):
        write_output("/dev/full", b"x")
    fifo = alone / "out"
    os.mkfifo(fifo)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()))
    reader.start()
    write_output(fifo, b"through")
    reader.join(20)
    assert read == [b"through"] and stat.S_ISFIFO(fifo.stat().st_mode)


@posix
def test_a_descriptor_of_the_shell_is_written_through(alone: Path) -> None:
    """``-o /dev/fd/5`` is the file that is open there, not another one of its name."""
    path = alone / "out"
    with path.open("wb") as file:
        file.write(b"before, ")
        file.flush()
        inode = os.fstat(file.fileno()).st_ino
        write_output(f"/dev/fd/{file.fileno()}", b"through")
    assert path.stat().st_ino == inode and path.read_bytes().endswith(b"through")


@pytest.mark.parametrize("extension", WRITERS)
def test_long_names(alone: Path, extension: str) -> None:
    """As long as a name can be, and a byte longer: written, or one error."""
    path = alone / ("out" + "n" * (252 - len(extension)) + extension)
    WRITERS[extension](path)
    assert path.is_file() and len(path.name) == 255
    with pytest.raises(OutputError, match="too long") as caught:
        WRITERS[extension](alone / ("out" + "n" * 253 + extension))
    assert caught.value.help == "give a shorter name"


@pytest.mark.parametrize(
    ("name", "says"),
    [("no/folder/out", "no folder"), ("", "it is a folder"), ("nul\0", "null"), ("out\udcff\ud800", "cannot write")],
)
def test_names_that_are_none(alone: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str) -> None:
    """One error, in characters that every terminal can show."""
    monkeypatch.chdir(alone)
    with pytest.raises(OutputError, match=says) as caught:
        write_output(name, b"x")
    assert str(caught.value).isascii()


@posix
def test_a_link_to_itself_is_no_output(alone: Path) -> None:
    """Nor does it hang."""
    (alone / "out").symlink_to("out")
    with pytest.raises(OutputError, match="symbolic links"):
        write_output(alone / "out", b"x")


@posix
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_in_a_folder_that_takes_no_other(alone: Path) -> None:
    """The file itself is written, since nothing can be made beside it."""
    path = alone / "out"
    path.write_bytes(b"old")
    alone.chmod(0o555)
    try:
        write_output(path, b"new")
        with pytest.raises(OutputError, match="permission denied"):
            write_output(alone / "out2", b"new")
    finally:
        alone.chmod(0o755)
    assert path.read_bytes() == b"new"


@posix
def test_standard_output_by_its_name(alone: Path) -> None:
    """``-o /dev/stdout`` is where the other results go, also where descriptor 1 leads elsewhere."""
    code = "from kernscope.ir.output import write_output; print('first'); write_output('/dev/stdout', b'second')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"first\nsecond"


def test_arrays_are_written_to_the_name_given(alone: Path) -> None:
    """No extension is added."""
    with open_output(alone / "out") as file:
        np.savez(file, x=np.arange(3))
    assert np.load(alone / "out")["x"].tolist() == [0, 1, 2]
