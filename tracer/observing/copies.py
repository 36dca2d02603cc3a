"""Copies of an author's functions that tell of their branches: the same text, compiled with questions in it, over the
same globals and the same closure. The functions themselves stay as they are."""

from __future__ import annotations
import __future__

import ast
import builtins
import copy
import functools
import linecache
import operator
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

import attrs

from ...ir.source.frames import is_author_file
from ..definitions import definitions, imports, lambdas
from ..kernel import Kernel
from .sites import NAMES, Site, instrumented

__all__ = ["Authors", "copied_code", "with_code"]

_FACTORY = "_kernscope_factory"
#: What functions speak of whose assertions pytest has rewritten: those of tests, and of what comes with a plugin.
_PYTEST = "@pytest_ar"
_INSTALLED = ("site-packages", "dist-packages")
#: What a ``from __future__ import`` leaves in a code's flags.
_FLAGS = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


@attrs.frozen
class Authors:
    """Whose functions are watched: those in files of an author's. Of what is installed only the package that the kernel
    is in is: other libraries decide nothing of it."""

    package: str

    @classmethod
    def of(cls, file: str) -> Authors:
        """By the kernel's file."""
        return cls(_installed_package(file))

    def wrote(self, file: str) -> bool:
        """Whether a file is one of theirs."""
        return is_author_file(file) and _installed_package(file) in ("", self.package)


@functools.lru_cache(maxsize=1024)
def _installed_package(file: str) -> str:
    """The package of an installed file, by its folder; empty for any other file."""
    parts = os.path.realpath(file).split(os.sep)
    places = [at for at, part in enumerate(parts) if part in _INSTALLED]
    return os.sep.join(parts[: places[-1] + 2]) if places else ""


def copied_code(function: FunctionType, add: Callable[[Site], int], authors: Authors) -> CodeType | None:
    """The code of a function with questions in it; None where its text is not at hand, or is not what was compiled."""
    found = _definition(function)
    if found is None:
        return None
    tree, of_class = found
    if not _is_same(_compiled(_bare(tree), function, of_class), function.__code__):
        return None
    calls = _Calls(function, authors)
    return _compiled(instrumented(_bare(tree), function.__code__.co_filename, add, calls), function, of_class)


def with_code(function: FunctionType, code: CodeType, questions: Mapping[str, Callable[..., Any]]) -> FunctionType:
    """A function with another code, which asks ``questions``."""
    own = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells = tuple(own[name] if name in own else types.CellType(questions[name]) for name in code.co_freevars)
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    made.__dict__.update(function.__dict__)
    return made


def _text(function: FunctionType) -> str:
    """The text of a function's file."""
    file = function.__code__.co_filename
    linecache.checkcache(file)
    return "".join(linecache.getlines(file, function.__globals__))


def _definition(function: FunctionType) -> tuple[ast.FunctionDef | ast.Lambda, str] | None:
    code, text = function.__code__, _text(function)
    if code.co_name == "<lambda>":
        found = [tree for tree in lambdas(code.co_filename, text) if tree.lineno == code.co_firstlineno]
        return (found[0], "") if len(found) == 1 else None
    known = definitions(code.co_filename, text).get((code.co_firstlineno, code.co_name))
    return None if known is None else (known.tree, known.of_class)


def _bare(tree: ast.FunctionDef | ast.Lambda) -> Any:
    """A copy without what Python evaluated when it defined the function."""
    made = copy.deepcopy(tree)
    arguments = made.args
    for argument in ast.walk(arguments):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [None if d is None else ast.Constant(None) for d in arguments.kw_defaults]
    if isinstance(made, ast.FunctionDef):
        made.decorator_list, made.returns = [], None
    return made


def _compiled(tree: Any, function: FunctionType, of_class: str) -> CodeType:
    """The code of a function from its tree, as the file's compiler would make it: in its class, for private names, and
    with the variables of the functions around it."""
    code = function.__code__
    body: ast.stmt = ast.Expr(tree) if isinstance(tree, ast.Lambda) else tree
    if of_class:
        body = ast.ClassDef(of_class, [], [], [body], [])
    free = [name for name in code.co_freevars if name != "__class__" or not of_class]
    arguments = ast.arguments([], [ast.arg(name) for name in (*NAMES, *free)], None, [], [], None, [])
    # What the file's module or class binds is no variable of the factory's.
    bound = [name for name in (of_class, getattr(tree, "name", "")) if name and name not in free]
    inside = [*([ast.Global(bound)] if bound else []), body]
    factory_tree = ast.copy_location(ast.FunctionDef(_FACTORY, arguments, inside, []), tree)
    module = ast.Module([*imports(code.co_filename, _text(function)), factory_tree], [])
    ast.copy_location(body, tree)
    with warnings.catch_warnings():  # of the author's text, which gave them when it was imported
        warnings.simplefilter("ignore")
        made = compile(
            ast.fix_missing_locations(module), code.co_filename, "exec", flags=code.co_flags & _FLAGS, dont_inherit=True
        )
    factory = next(_inner(made))
    while True:
        inner = list(_inner(factory))
        found = [one for one in inner if one.co_name == code.co_name]
        if found and not (of_class and factory.co_name == _FACTORY):
            return found[0]
        factory = inner[0]


def _inner(code: CodeType) -> Iterator[CodeType]:
    return (constant for constant in code.co_consts if isinstance(constant, CodeType))


def _is_same(made: CodeType, code: CodeType) -> bool:
    """Whether two codes do the same: that of the text that is there now, and that which was compiled from the file.
    Where pytest has put its own in the place of assertions, name and first line have to do."""
    if _PYTEST in code.co_names:
        return True
    inner, its = list(_inner(made)), list(_inner(code))
    return (
        made.co_code == code.co_code
        and made.co_names == code.co_names
        and made.co_varnames == code.co_varnames
        and _constants(made) == _constants(code)
        and len(inner) == len(its)
        and all(map(_is_same, inner, its))
    )


def _constants(code: CodeType) -> list[tuple[type, Any]]:
    return [(type(one), one) for one in code.co_consts if not isinstance(one, CodeType)]


class _Calls:
    """Whether what a function's text calls may be an author's function."""

    def __init__(self, function: FunctionType, authors: Authors) -> None:
        self._function = function
        self._authors = authors
        code = function.__code__
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        self._known: dict[str, Any] = {**vars(builtins), **function.__globals__}
        self._local = {*code.co_varnames, *code.co_cellvars, *cells}

    def __call__(self, called: ast.expr) -> bool:
        match called:
            case ast.Name(id=name):
                return name in self._local or name not in self._known or self._is_author(self._known[name])
            case ast.Attribute(value=value, attr=name) if value.lineno == called.end_lineno:
                # Over several lines CPython has another place for a call of an attribute than for one of its value.
                owner = self._owner(value)
                return name in self._methods if owner is None else self._is_author(getattr(owner, name, None))
            case ast.Attribute():
                return False
        return True

    def _owner(self, value: ast.expr) -> ModuleType | None:
        """The module that an expression names."""
        if not isinstance(value, ast.Name) or value.id in self._local:
            return None
        found = self._known.get(value.id)
        return found if isinstance(found, ModuleType) else None

    @functools.cached_property
    def _methods(self) -> frozenset[str]:
        """The names of all functions in the author's files that this one's module speaks of."""
        modules = [sys.modules.get(str(getattr(value, "__module__", ""))) for value in self._known.values()]
        modules += [value for value in self._known.values() if isinstance(value, ModuleType)]
        files = {str(getattr(module, "__file__", None) or "") for module in modules}
        written = {file for file in files if file and self._authors.wrote(file)} | {self._function.__code__.co_filename}
        return frozenset(name for file in written for _, name in definitions(file, "".join(linecache.getlines(file))))

    def _is_author(self, value: Any) -> bool:
        """Whether something that is called is an author's, or holds what is."""
        while isinstance(value, functools.partial):
            value = value.func
        value = getattr(value, "function", None) if isinstance(value, Kernel) else value
        code = getattr(getattr(value, "__func__", value), "__code__", None)
        return isinstance(code, CodeType) and self._authors.wrote(code.co_filename)
