"""The pages that are made when the documentation is built: operations and machines from their tables, and a gallery
from the kernels themselves. They are not kept, so that they cannot say anything else than the code.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import kernscope as ks
import kernscope.kernels
from kernscope.ir.ops import OPERATIONS
from kernscope.ir.ops.operation import Family, Operation, Space
from kernscope.machine.description import machine_comments
from kernscope.machine.toml_form import known_paths
from kernscope.scheduler.policy.registry import POLICIES

#: A gallery shows a kernel at a size at which its picture can be read: the first of these launches that it has.
READABLE = ("small", "ragged")
#: Nodes that run on no engine of their own.
NO_COST = "-"


def write(folder: Path) -> None:
    """Write all pages, and the pictures and reports of the gallery, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {"operations.md": operations_page(), "machines.md": machines_page(), "gallery.md": gallery_page(folder)}
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")


# --- operations -------------------------------------------------------------------------------------------------------


def operations_page() -> str:
    """Every operation of the table, by family."""
    sections = [_family(family) for family in Family if any(op.family is family for op in OPERATIONS.values())]
    return (
        "# Operations\n\n"
        "What a node of a graph can be, from the declarations that the tool itself reads. *Engine* is the founding "
        "machine's name for what carries the operation out, *class* what a machine looks its cycles up under where it "
        "does not list the operation by name, and *from, to* where operands and result lie. An operation marked "
        "`async` lets the CPU go on after its issue under the policy `lazy`.\n\n" + "\n".join(sections)
    )


def _family(family: Family) -> str:
    rows = "".join(_operation_row(op) for op in OPERATIONS.values() if op.family is family)
    head = "| operation | engine | class | from, to | work | |\n|---|---|---|---|---|---|\n"
    return f"## {family.value.capitalize()}\n\n{head}{rows}"


def _operation_row(op: Operation) -> str:
    places = ", ".join(_place(space) for space in (op.reads_from, op.writes_to))
    doc = _cell(op.doc) + (" `async`" if op.asynchronous else "")
    return f"| `{op.name}` | {op.engine} | {op.cost or NO_COST} | {places} | {op.work_kind} | {doc} |\n"


def _place(space: Space) -> str:
    return NO_COST if space is Space.NOWHERE else space.value


def _cell(text: str) -> str:
    """Text of a docstring as a cell of a Markdown table."""
    return text.replace("``", "`").replace("|", "\\|").replace("\n", " ")


# --- machines ---------------------------------------------------------------------------------------------------------


def machines_page() -> str:
    """The presets as they are read, the policies, and all paths that a description may have."""
    presets = "\n".join(
        f"### {name}\n\n```toml\n{ks.load_machine(name).to_toml(machine_comments(name))}```\n"
        for name in ks.machine_names()
    )
    # One machine with a memory, and one with several, an engine of its own clock and costs by memory and dtype.
    shown = [ks.load_machine(name) for name in ("ahbm-pe", "trn1")]
    paths = dict.fromkeys(path for machine in shown for path in known_paths(machine, tuple(machine.engine)))
    policies = "".join(f"| `{name}` | {policy_words(name)} |\n" for name in POLICIES)
    return (
        "# Machines and policies, field by field\n\n"
        "What the presets say once their bases are merged in, with where their numbers come from; what they mean is on "
        "the page about [the machine](../machine.md).\n\n"
        f"## Presets\n\n{presets}\n"
        "## Fields\n\n"
        "Every path that `--set` knows of `ahbm-pe` and of `trn1`: memories and engines have the names that their "
        "machine gives them. Tables end in the names that they can list.\n\n"
        f"{_paths(paths)}\n"
        "## Policies\n\n"
        "From the registry, from the strictest to the freest; [policies](../policies.md) says what they are for.\n\n"
        f"| policy | |\n|---|---|\n{policies}"
    )


def policy_words(name: str) -> str:
    """What the registry says of a policy, as one sentence."""
    policy = POLICIES[name]
    waits = ", ".join(sorted(f"`{reason.name.lower()}`" for reason in policy.waits_for)) or "no edge"
    order = "in program order" if policy.in_order else "in any order that the edges allow"
    proof = "; exact, with proof" if policy.exact else ""
    asked = "; only on request" if policy.on_request else ""
    held = f"the CPU waits for {waits} before an issue and is held by {policy.holds.value} commands"
    return f"{held}; engines start {order}{proof}{asked}"


def _paths(paths: Iterable[str]) -> str:
    """Paths by the table that they lie in, one line each."""
    by_table: dict[str, list[str]] = {}
    for path in paths:
        table, _, key = path.rpartition(".")
        by_table.setdefault(table, []).append(key)
    return "".join(
        f"`{table or 'on top'}`\n: {', '.join(f'`{key}`' for key in keys)}\n\n" for table, keys in by_table.items()
    )


# --- gallery ----------------------------------------------------------------------------------------------------------


def gallery_kernels() -> Iterator[tuple[ks.Kernel, ks.Launch]]:
    """Every kernel that comes with the package, with the launch that it is shown at."""
    for module in pkgutil.iter_modules(kernscope.kernels.__path__):
        found = importlib.import_module(f"kernscope.kernels.{module.name}")
        for kernel in vars(found).values():
            if isinstance(kernel, ks.Kernel) and kernel.function.__module__ == found.__name__ and kernel.launches:
                named = next((name for name in READABLE if name in kernel.launches), next(iter(kernel.launches)))
                yield kernel, kernel.launch(named)


def gallery_page(folder: Path) -> str:
    """Trace, lint, schedule, draw and report every kernel; the files go into ``folder``."""
    sections = [_exhibit(kernel, launch, folder) for kernel, launch in gallery_kernels()]
    return (
        "# Gallery\n\n"
        "The kernels that come with kernscope, each at a size at which its picture can be read, on the default machine "
        "(assumed numbers). Pictures, times and reports were made by running them when this page was built.\n\n"
        + "\n".join(sections)
    )


def _exhibit(kernel: ks.Kernel, launch: ks.Launch, folder: Path) -> str:
    name = f"{kernel.name}-{launch.name}"
    graph = ks.trace(launch)
    ladder = ks.compare(graph)
    best = ladder["list"].schedule
    assert best is not None, f"{name} cannot be scheduled"
    ks.draw(graph, folder / f"{name}.svg", schedule=best)
    ks.timeline([best], folder / f"{name}-timeline.svg")
    ks.report(graph, folder / f"{name}.html", launch=launch)
    findings = ks.lint(graph).diagnostics
    summary = (kernel.function.__doc__ or "").strip().split("\n\n")[0]
    codes = ", ".join(sorted({finding.code for finding in findings})) or "no findings"
    return (
        f"## {kernel.name}\n\n{_prose(summary)}\n\n"
        f"Launch `{launch.name}`: {len(graph):,} nodes, {graph.ranks} rank{'s' * (graph.ranks > 1)}, scratch peak "
        f"{ks.liveness(graph).peak_bytes:,} B; {codes}. {{download}}`The whole report <{name}.html>`.\n\n"
        f"```text\n{ladder}\n```\n\n"
        f"![The graph of {kernel.name}]({name}.svg)\n\n![Its timeline under list]({name}-timeline.svg)\n"
    )


def _prose(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("``", "`"))
