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


def test_what_times_hold_besides_is_fitted_and_is_no_field(kernscope, tmp_path):
    """The same 5 us in every time are found beside a latency; the machine's file says nothing of them, and has no other
    field of that name."""
    measured = lines(tmp_path, "op,work,dtype,family,ns\nload,65536,f16,dma,6112\nload,1024000,f16,dma,13600\n")
    options = ("--param", "host_us=0:10", "--param", "dma_read.bytes_per_ns=64:256", "-o", "m.toml")
    made = kernscope("machine", "fit", "ahbm-pe", measured, *options)
    assert made.status == 0, made.err
    found = dict(
        line.removeprefix("fitted").split(" = ") for line in made.out.splitlines() if line.startswith("fitted ")
    )
    values = {name.strip(): float(value) for name, value in found.items()}
    assert abs(values["host_us"] - 5.5) < 0.6 and 110 < values["dma_read.bytes_per_ns"] < 150
    written = (tmp_path / "m.toml").read_text(encoding="utf-8")
    assert "host_us" not in written and "bytes_per_ns" in written
    assert "no machine field 'host_us'" in kernscope("machine", "ahbm-pe", "--set", "host_us=1").err


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
