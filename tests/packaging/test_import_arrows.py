"""Data flows one way, and so do imports: kernel -> tracer -> ir -> scheduler -> backends.

The sources are parsed, not imported, so a broken module is judged as well.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parents[2]
NOT_SOURCES = {"benchmarks", "build", "dist", "docs", "tests"}
ROOT_FOLDER = "(root)"

# Folder -> folders it may import besides itself. `kernels` is apart: it may use the public names only.
MAY_IMPORT: dict[str, set[str]] = {
    "ir": set(),
    # A front end without scopes has its allocations placed.
    "tracer": {"ir", "memory"},
    "memory": {"ir"},
    "machine": {"ir"},
    "scheduler": {"ir", "machine"},
    "analysis": {"ir", "memory", "machine", "scheduler"},
    # Nothing of what it checks: a schedule's columns reach it as attributes of what it is given.
    "checker": {"ir", "machine"},
    "linter": {"ir", "memory", "machine", "scheduler", "analysis"},
    "backends": {"ir", "memory", "machine", "scheduler", "linter"},
    "face": {"ir", "tracer", "memory", "machine", "scheduler", "analysis", "checker", "linter", "backends"},
    "cli": {
        *("ir", "tracer", "memory", "machine", "scheduler", "analysis", "linter", "backends", "kernels", "face"),
        ROOT_FOLDER,
    },
    ROOT_FOLDER: {"ir", "tracer", "memory", "machine", "scheduler", "linter", "backends", "kernels", "face", "cli"},
}
# Folder -> packages of others it may import. Only `backends` knows a drawing library, or networkx.
MAY_USE: dict[str, set[str]] = {
    "ir": {"attr", "attrs", "cattrs", "ml_dtypes", "numba", "numpy", "scipy"},
    "tracer": {"attr", "attrs", "ml_dtypes", "numpy"},
    "memory": {"attr", "attrs", "numpy"},
    "machine": {"attr", "attrs", "numpy"},
    "scheduler": {"attr", "attrs", "numpy", "ortools"},
    "analysis": {"attr", "attrs"},
    "checker": {"attr", "attrs", "numpy"},
    "linter": {"attr", "attrs", "numpy"},
    "backends": {"attr", "attrs", "graphviz", "matplotlib", "ml_dtypes", "networkx", "numpy"},
    "kernels": {"ml_dtypes", "numpy"},
    "cli": {"attr", "attrs", "cattrs", "click", "ml_dtypes", "numpy", "rich"},
    # pytest: for the plugin, which only pytest imports.
    "face": {
        "attr",
        "attrs",
        "cattrs",
        "distributed",
        "lsprotocol",
        "ml_dtypes",
        "numpy",
        "pyarrow",
        "pygls",
        "pytest",
    },
    ROOT_FOLDER: set(),
}
# Room within a folder -> rooms of the same folder that it may import; modules on the folder's own floor are free.
MAY_IMPORT_WITHIN: dict[str, set[str]] = {
    "ir.arrays": set(),
    "ir.source": set(),
    "ir.ops": {"ir.arrays", "ir.source"},
    "ir.dependence": {"ir.ops", "ir.arrays"},
    "ir.forms": {"ir.ops", "ir.arrays", "ir.source"},
    "ir.verifier": {"ir.ops", "ir.dependence", "ir.arrays", "ir.source", "ir.forms"},
    "tracer.values": set(),
    "tracer.observing": {"tracer.values"},
    "tracer.recording": {"tracer.values"},
    "tracer.language": {"tracer.values", "tracer.recording"},
    "tracer.triton": {"tracer.values", "tracer.recording"},
    "machine.presets": set(),
    "scheduler.search": set(),
    "scheduler.task_files": set(),
    "scheduler.policy": {"scheduler.search"},
    "scheduler.result": {"scheduler.search", "scheduler.policy"},
    "linter.analyses": set(),
    "linter.fixes": {"linter.analyses"},
    "linter.wording": {"linter.analyses", "linter.fixes"},
    "linter.rules": {"linter.analyses", "linter.fixes", "linter.wording"},
    "linter.formats": {"linter.rules"},
    "backends.execution": set(),
    "backends.graph_picture": set(),
    "backends.timelines": set(),
    "backends.report": {"backends.graph_picture", "backends.timelines"},
    "face.editor": {"face.guard"},
    "face.guard": set(),
    "face.sweeping": {"face.guard"},
    "face.triton": {"face.guard"},
}


class Import(NamedTuple):
    """One name brought in: from the module `source`, line `line`, it asks for `target`."""

    source: str
    line: int
    target: str  # absolute dotted name; for `from a import b` that is `a.b`
    module: str  # what is imported for certain: `a` of `from a import b`
    in_function: bool
    for_types_only: bool


def source_modules(root: Path) -> dict[str, Path]:
    """Dotted name -> file of every module of the package `kernscope` whose folder is `root`."""
    modules: dict[str, Path] = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[0] in NOT_SOURCES or any(part.startswith(".") for part in parts):
            continue
        named = parts[:-1] if parts[-1] == "__init__" else parts
        modules[".".join(["kernscope", *named])] = path
    return modules


def imports_of(name: str, path: Path) -> Iterator[Import]:
    """Every import of one module: statements anywhere in it, and `import_module` of a literal name."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    pending: list[tuple[ast.AST, bool, bool]] = [(tree, False, False)]
    while pending:
        node, in_function, for_types = pending.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(name, node.lineno, alias.name, alias.name, in_function, for_types)
        elif isinstance(node, ast.ImportFrom):
            module = absolute(node.module or "", node.level, package)
            for alias in node.names:
                yield Import(name, node.lineno, f"{module}.{alias.name}", module, in_function, for_types)
        elif isinstance(node, ast.Call) and (literal := imported_by_call(node)) is not None:
            level = len(literal) - len(literal.lstrip("."))
            module = absolute(literal.lstrip("."), level, package)
            # The call is how a face loads lazily: it is judged by where it leads, not by where it stands.
            yield Import(name, node.lineno, module, module, False, True)
        inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if isinstance(node, ast.If) and is_type_checking(node.test):
            pending.extend((child, inside, True) for child in node.body)
            pending.extend((child, inside, for_types) for child in node.orelse)
        else:
            pending.extend((child, inside, for_types) for child in ast.iter_child_nodes(node))


def is_type_checking(test: ast.expr) -> bool:
    """Whether a condition is `TYPE_CHECKING` or `typing.TYPE_CHECKING`."""
    return ast.unparse(test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def imported_by_call(call: ast.Call) -> str | None:
    """The name that `importlib.import_module("name")` or `__import__("name")` asks for, if it is a literal."""
    if ast.unparse(call.func) not in {"importlib.import_module", "import_module", "__import__"}:
        return None
    if not call.args or not isinstance(call.args[0], ast.Constant) or not isinstance(call.args[0].value, str):
        return None
    return call.args[0].value


def absolute(module: str, level: int, package: str) -> str:
    """The absolute name of a module that was named relatively, `level` dots up from inside `package`."""
    if level == 0:
        return module
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - level + 1], *([module] if module else [])])


def folder_of(name: str, modules: dict[str, Path]) -> str:
    """The top-level folder that a dotted name under `kernscope` lies in; the root has one of its own."""
    parts = name.split(".")
    if len(parts) < 2:
        return ROOT_FOLDER
    top = modules.get(".".join(parts[:2]))
    return parts[1] if top is not None and top.name == "__init__.py" else ROOT_FOLDER


def forbidden_imports(root: Path) -> list[str]:
    """One line for each import that goes against the arrows, or that uses a package it should not know."""
    modules = source_modules(root)
    return [
        f"{path.relative_to(root)}:{found.line}: {problem}"
        for name, path in modules.items()
        for found in sorted(set(imports_of(name, path)))
        if (problem := objection(found, folder_of(name, modules), modules)) is not None
    ]


def objection(found: Import, folder: str, modules: dict[str, Path]) -> str | None:
    """What is wrong with an import made from inside `folder`; None if nothing is."""
    top = found.target.split(".")[0]
    if folder not in MAY_USE:
        return f"folder {folder} has no row in the table of arrows"
    if top in sys.stdlib_module_names:
        return None
    if top != "kernscope":
        return None if top in MAY_USE[folder] else f"{folder} may not use {top}"
    target = folder_of(found.target, modules)
    if target == folder:
        return objection_within(found, modules)
    if folder == "kernels":
        public = found.target == "kernscope" or (found.module == "kernscope" and found.target not in modules)
        return None if public else f"kernels may use public names only, not {found.target}"
    return None if target in MAY_IMPORT[folder] else f"{folder} may not import {found.target}"


def objection_within(found: Import, modules: dict[str, Path]) -> str | None:
    """What is wrong with an import of a folder from itself; None if nothing is."""
    here, there = room_of(found.source, modules), room_of(found.target, modules)
    if here is None or there in (None, here):
        return None
    if here not in MAY_IMPORT_WITHIN:
        return f"room {here} has no row in the table of arrows"
    return None if there in MAY_IMPORT_WITHIN[here] else f"{here} may not import {found.target}"


def room_of(name: str, modules: dict[str, Path]) -> str | None:
    """``scheduler.policy`` of a module in there; None on a folder's own floor."""
    parts = name.split(".")
    room = modules.get(".".join(parts[:3]))
    return ".".join(parts[1:3]) if len(parts) > 2 and room is not None and room.name == "__init__.py" else None


def imports_in_functions(root: Path) -> list[str]:
    """One line for each import statement that stands inside a function."""
    return sorted(
        f"{path.relative_to(root)}:{found.line}: {found.target}"
        for name, path in source_modules(root).items()
        for found in imports_of(name, path)
        if found.in_function
    )


def import_cycles(root: Path) -> list[list[str]]:
    """Groups of modules that import each other when they are run (imports for types alone do not count)."""
    modules = source_modules(root)
    graph = nx.DiGraph()
    for name, path in modules.items():
        for found in imports_of(name, path):
            target = found.target if found.target in modules else found.module
            if target in modules and not found.for_types_only:
                graph.add_edge(name, target)
    groups = [sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1]
    return sorted(groups + [[name] for name in nx.nodes_with_selfloops(graph)])


def test_imports_follow_the_arrows() -> None:
    """No folder imports what lies after it, nor a package that it should not know."""
    assert forbidden_imports(ROOT) == []


def test_no_import_stands_inside_a_function() -> None:
    """What a module needs is read off its head."""
    assert imports_in_functions(ROOT) == []


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    """Each module can be read after those that it imports."""
    assert import_cycles(ROOT) == []


def write_tree(root: Path, files: dict[str, str]) -> Path:
    """A small tree of sources under `root`, with an empty `__init__.py` in every folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        for folder in [path.parent, *path.parent.parents]:
            (folder / "__init__.py").touch()
            if folder == root:
                break
    return root


@pytest.mark.parametrize(
    ("file", "line", "problem"),
    [
        ("ir/graph.py", "from ..scheduler import policy", "ir may not import kernscope.scheduler.policy"),
        ("ir/graph.py", "import kernscope.tracer", "ir may not import kernscope.tracer"),
        ("ir/graph.py", "import networkx", "ir may not use networkx"),
        ("ir/ops/dot.py", "from ...tracer import tl", "ir may not import kernscope.tracer.tl"),
        ("tracer/tl.py", "from ..face import api", "tracer may not import kernscope.face.api"),
        ("scheduler/policy.py", "from ..linter import rules", "scheduler may not import kernscope.linter.rules"),
        ("scheduler/policy.py", "import graphviz", "scheduler may not use graphviz"),
        ("linter/report.py", "from ..tracer import tl", "linter may not import kernscope.tracer.tl"),
        ("backends/dot.py", "from ..tracer import tl", "backends may not import kernscope.tracer.tl"),
        ("backends/dot.py", "import click", "backends may not use click"),
        ("kernels/softmax.py", "from kernscope.ir import graph", "not kernscope.ir.graph"),
        ("kernels/softmax.py", "from kernscope import ir", "not kernscope.ir"),
        ("kernels/softmax.py", "import kernscope.face.api", "not kernscope.face.api"),
        ("checker/work.py", "from ..scheduler.result import columns", "checker may not import kernscope.scheduler"),
        ("scheduler/search/dag.py", "from ..policy import registry", "scheduler.search may not import"),
        ("scheduler/new/dag.py", "from ..policy import registry", "room scheduler.new has no row"),
        ("cli/main.py", "import matplotlib.pyplot", "cli may not use matplotlib"),
        ("ir/graph.py", "def f():\n    import kernscope.tracer", "ir may not import kernscope.tracer"),
        ("ir/graph.py", "import importlib\nimportlib.import_module('..tracer', __package__)", "may not import"),
        ("surprise/new.py", "import numpy", "folder surprise has no row"),
    ],
)
def test_an_import_against_the_arrows_is_found(tmp_path: Path, file: str, line: str, problem: str) -> None:
    """The check can fail, whichever way the import is written."""
    folders = ("ir", "tracer", "scheduler/policy", "checker", "linter", "backends", "kernels", "cli", "machine")
    tree = write_tree(tmp_path, {"face/api.py": "", **{f"{folder}/__init__.py": "" for folder in folders}, file: line})
    (found,) = forbidden_imports(tree)
    assert found.startswith(f"{file}:")
    assert problem in found


def test_imports_along_the_arrows_pass(tmp_path: Path) -> None:
    """The check stays silent on what the table allows."""
    tree = write_tree(
        tmp_path,
        {
            "__init__.py": "from .face.api import trace\nfrom .tracer import tl",
            "face/api.py": "from ..ir.graph import Graph\nfrom ..tracer import tl",
            "ir/graph.py": "import math\nimport numpy as np\nfrom .errors import ShapeError",
            "ir/errors.py": "",
            "tracer/tl.py": "from ..ir.graph import Graph\nfrom ..ir import errors",
            "scheduler/policy.py": "from ..ir import graph\nfrom ..machine.latency import x",
            "machine/latency.py": "from attrs import frozen",
            "linter/report.py": "from ..scheduler.policy import x",
            "backends/dot.py": "import graphviz\nfrom ..linter.report import x",
            "scheduler/search/dag.py": "from ...ir.graph import x",
            "scheduler/result/lanes.py": "from ..search.dag import x\nfrom ...machine.latency import y",
            "kernels/softmax.py": "import kernscope as ks\nfrom kernscope import tl\nimport numpy as np",
            "cli/__init__.py": "import click\nfrom ..face import api",
            "tests/test_x.py": "import kernscope.ir.graph\nimport pytest",
        },
    )
    assert forbidden_imports(tree) == []
    assert import_cycles(tree) == []


def test_an_import_inside_a_function_is_found(tmp_path: Path) -> None:
    """The check can fail: methods and nested blocks count, a guarded import at the head does not."""
    tree = write_tree(
        tmp_path,
        {
            "ir/a.py": "class A:\n    def f(self):\n        if self:\n            import math\n",
            "ir/b.py": "try:\n    import numba\nexcept ImportError:\n    numba = None\n",
        },
    )
    assert imports_in_functions(tree) == ["ir/a.py:4: math"]


def test_an_import_cycle_is_found(tmp_path: Path) -> None:
    """The check can fail: through `from . import`, through a package's face; types alone close no circle."""
    tree = write_tree(
        tmp_path,
        {
            "ir/a.py": "from . import b",
            "ir/b.py": "from .c import x",
            "ir/c.py": "from kernscope.ir.a import y",
            "tracer/__init__.py": "from .tl import load",
            "tracer/tl.py": "from . import handle_count",
            "linter/a.py": "from .b import x",
            "linter/b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import y\n",
        },
    )
    assert import_cycles(tree) == [
        ["kernscope.ir.a", "kernscope.ir.b", "kernscope.ir.c"],
        ["kernscope.tracer", "kernscope.tracer.tl"],
    ]
