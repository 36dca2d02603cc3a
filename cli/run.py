"""``kernscope run``: the kernel on numbers, beside its reference."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any
from zipfile import BadZipFile

import click
import numpy as np

from ..backends.execution.blame import blame_lines
from ..backends.execution.comparison import Comparison, error_text, unstored_text
from ..backends.execution.execute import execute
from ..backends.execution.inputs import random_inputs
from ..backends.execution.order import execution_order
from ..face import api
from ..ir.errors import InputError
from ..ir.forms.counts import plural
from ..ir.output import check_output, open_output
from ..ir.unstored import Unstored
from ..scheduler.policy.registry import POLICIES
from .choices import Choice
from .command import Command
from .options import make_job, target_options
from .stages import stages
from .tables import note, say, table

__all__ = ["comparison_lines", "run"]

Array = np.ndarray[Any, np.dtype[Any]]


@click.command(cls=Command, short_help="Execute on numbers, beside the reference.")
@target_options
@click.option(
    "--inputs", "inputs_file", metavar="FILE", help="Inputs by tensor name, an .npz file; default: random ones."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random inputs.")
@click.option(
    "--order",
    type=Choice(("program", *POLICIES)),
    default="program",
    show_default=True,
    help="Program or a schedule's.",
)
@click.option("--poison", is_flag=True, help="Fill rewound scratch with NaN; in program order, report stale accesses.")
@click.option("-o", "--output", metavar="FILE", help="Write the outputs to an .npz file.")
@click.pass_context
def run(
    context: click.Context,
    /,
    inputs_file: str | None,
    seed: int,
    order: str,
    poison: bool,
    output: str | None,
    **options: Any,
) -> None:
    """Execute TARGET on numbers and compare with the launch's reference, if it has one.

    Exit status 1: a mismatch with the reference, or stale accesses caught by --poison.
    """
    if output:
        check_output(output)
    with stages() as tell:
        tell("tracing")
        job = make_job(**options)
        graph = job.graph()
        given = _read(inputs_file) if inputs_file else {}
        inputs = {**random_inputs(graph, seed), **graph.defaults, **given}
        tell("scheduling")
        chosen = order if order == "program" else api.schedule(graph, order, job.machine)
        tell("executing")
        done = execute(graph, inputs, chosen, poison)
    lost = [name for name in graph.initial if name not in graph.defaults and name not in given]
    if lost:
        note(f"note: {', '.join(lost)}: traced with arrays, which a saved graph does not hold: --inputs FILE", err=True)
    say(f"{graph.kernel}: {len(graph):,} nodes executed in {order} order{', poisoned' if poison else ''}")
    say(table([(name, _shape(a), _range(a, done.unstored.get(name))) for name, a in done.outputs.items()]))
    for each in done.unstored.values():
        say(f"  {unstored_text(each)}")
    with stages() as tell:
        tell("computing the reference")
        comparisons = (
            api.compare_with_launch(job.launch, inputs, done.outputs, done.unstored) if job.launch is not None else []
        )
    is_saved = job.launch is None
    why = ": a saved graph has none, whatever its launch had; run the kernel's file" if is_saved else ""
    say("\n".join(comparison_lines(comparisons, why)))
    for wrong in [c for c in comparisons if c.first_wrong is not None][:1]:
        assert wrong.first_wrong is not None, "chosen for it"
        told = blame_lines(graph, execution_order(graph, chosen), wrong.tensor, wrong.first_wrong)
        say("\n".join(f"    {line}" for line in told))
    if output:
        _write(output, done.outputs)
        note(f"wrote {output}", err=True)
    caught = {
        "stale read": done.stale_reads,
        "stale write": done.stale_writes,
        "read of unwritten bytes": done.unwritten_reads,
    }
    for what, nodes in caught.items():
        if nodes:
            say(f"{plural(len(nodes), what)}:\n" + table([(str(graph[n]),) for n in nodes[:10]]))
            if len(nodes) > 10:
                say(f"  and {len(nodes) - 10:,} more; `kernscope lint` explains them")
    if any(not c.ok for c in comparisons) or any(caught.values()):
        context.exit(1)


def comparison_lines(comparisons: Sequence[Comparison], why: str = "") -> list[str]:
    """The outputs beside the reference, a line each; without one, ``why`` there is none."""
    if not comparisons:
        return [f"  no reference to compare with{why}"]
    rows = [
        (
            c.tensor,
            "agrees" if c.ok else "DIFFERS",
            "a part is never stored" if c.unstored else error_text(c.max_error, c.max_abs_error, c.tolerance),
        )
        for c in comparisons
    ]
    return [table(rows)]


def _shape(array: Array) -> str:
    return f"{array.dtype}[{','.join(map(str, array.shape))}]"


def _range(array: Array, unstored: Unstored | None) -> str:
    if unstored is not None:
        return _range(array[~unstored.mask()], None) + " where stored"
    finite = array[np.isfinite(array.astype(np.float64))].astype(np.float64)
    text = f"{finite.min():.4g} to {finite.max():.4g}" if finite.size else "no finite value"
    lost = array.size - finite.size
    return text + (f", {plural(lost, 'value')} not finite" if lost else "")


def _read(path: str) -> dict[str, Array]:
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise InputError(f"no file {path!r}", help="write one with np.savez(path, q=..., k=...)") from None
    except OSError as error:
        raise InputError(
            f"cannot read {path!r}: {error.strerror or error}", help="write one with np.savez(path, q=..., k=...)"
        ) from None
    except (ValueError, EOFError, AttributeError, TypeError, RuntimeError, BadZipFile, zlib.error):
        # Without numpy's own text, which may advise to unpickle the file.
        raise InputError(f"{path!r} is no .npz file", help="write one with np.savez(path, q=..., k=...)") from None


def _write(path: str, outputs: Mapping[str, Array]) -> None:
    # numpy's format has no bf16 and f8: it would lose the dtype's name. f32 holds their values exactly.
    ready = {n: a if a.dtype.kind in "fiub" and a.dtype.isbuiltin else a.astype(np.float32) for n, a in outputs.items()}
    with open_output(path) as file:
        np.savez(file, **ready)  # type: ignore[arg-type]  # numpy's stub takes the keywords for its own options
