"""``kernscope machine fit``: what it prints and writes, and what it says of a file that it cannot read."""

from fractions import Fraction
from pathlib import Path

import pytest

import kernscope as ks
from kernscope.face.machine_fitting import Measured, Parameter, fit_machine
from kernscope.machine.description import load_machine


def lines(tmp_path: Path, text: str) -> str:
    path = tmp_path / "measured.csv"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_fit_finds_the_numbers_that_the_times_were_made_with() -> None:
    """Times of a machine with another latency and another start give these back, to what a grid of three digits can
    say; and with a family left out as well."""
    base = load_machine("ahbm-pe")
    true = base.override({"dma_read.latency_ns": "730", "gemm.startup_cycles": "90"})

    def load(machine: ks.Machine, nbytes: int) -> float:
        port = machine.engine["dma_read"]
        return float(port.latency_ns + Fraction(nbytes) / port.bytes_per_ns)  # type: ignore[attr-defined]

    def dot(machine: ks.Machine, k: int) -> float:
        return float(machine.engine["gemm"].startup_cycles + k)  # type: ignore[attr-defined]

    rows = [
        Measured(f"{kind} {n}", f"{kind} {n % 2}", f(true, n), lambda machine, f=f, n=n: f(machine, n))  # type: ignore[misc]
        for kind, f in (("load", load), ("dot", dot))
        for n in (100, 301, 1000)
    ]
    wanted = [
        Parameter("dma_read.latency_ns", Fraction(0), Fraction(2000)),
        Parameter("gemm.startup_cycles", Fraction(0), Fraction(400)),
    ]
    found = fit_machine(base, wanted, rows)
    assert abs(float(found.values["dma_read.latency_ns"]) - 730) < 20
    assert abs(float(found.values["gemm.startup_cycles"]) - 90) < 10
    for row in found.rows:
        assert abs(row.after_ns / row.ns - 1) < 0.05 and row.left_out_ns is not None
        assert abs(row.left_out_ns / row.ns - 1) < 0.1
    assert fit_machine(base, wanted, rows).values == found.values


def test_what_a_fit_prints_and_writes(kernscope, tmp_path):
    """Errors before, after and left out; a machine on its base, with where its numbers come from, that can be shown."""
    measured = lines(tmp_path, "op,work,dtype,family,ns\nload,65536,f16,dma,1112\nload,1024,f16,dma,608\n")
    made = kernscope("machine", "fit", "ahbm-pe", measured, "--param", "dma_read.latency_ns=0:1600", "-o", "m.toml")
    assert made.status == 0, made.err
    assert "median error" in made.out and "fitted           dma_read.latency_ns = 600" in made.out
    written = (tmp_path / "m.toml").read_text(encoding="utf-8")
    assert written.splitlines()[:2] == ['name = "ahbm-pe-fitted"', 'base = "ahbm-pe"']
    assert "latency_ns = 600  # fitted to load 65536, load 1024" in written
    assert "latency_ns = 600                # fitted to load 65536, load 1024" in kernscope("machine", "m.toml").out


@pytest.mark.parametrize(
    ("text", "parameter", "message"),
    [
        ("op,work,ns\n", "dma_read.latency_ns=0:1", "measured.csv:1: no measured time"),
        ("opp,ns\n", "dma_read.latency_ns=0:1", "no column 'opp'"),
        ("op,work,ns\nload,1,0\n", "dma_read.latency_ns=0:1", "measured.csv:2: ns = '0'"),
        ("op,work,ns\nlaod,1,1\n", "dma_read.latency_ns=0:1", "no operation 'laod'"),
        ("op,work,ns\nload,a,1\n", "dma_read.latency_ns=0:1", "work = 'a'"),
        ("op,work,ns\n,1,1\n", "dma_read.latency_ns=0:1", "a kernel or an op is needed"),
        ("op,work,ns\nload,1,1\n", "dma_read.latency=0:1", "no machine field 'dma_read.latency'"),
        ("op,work,ns\nload,1,1\n", "dma_read.latency_ns=5", "write FIELD=LOW:HIGH"),
        ("op,work,ns\nload,1,1\n", "dma_read.latency_ns=5:1", "with LOW below HIGH"),
        ("kernel,ns\nnone.py,1\n", "dma_read.latency_ns=0:1", "measured.csv:2:"),
    ],
)
def test_what_cannot_be_fitted_is_told(kernscope, tmp_path, text, parameter, message):
    """Exit status 2, the line, and no traceback."""
    done = kernscope("machine", "fit", "ahbm-pe", lines(tmp_path, text), "--param", parameter)
    assert done.status == 2 and message in done.err and "Traceback" not in done.err, done.err
