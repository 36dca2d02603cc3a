"""The public names: each is there, and each says what it is."""

import inspect
from types import ModuleType, SimpleNamespace

import kernscope


def undocumented(module: ModuleType | SimpleNamespace) -> list[str]:
    """Names of `module.__all__` that are a class, a function or a module without a docstring of their own.

    Plain values (a version, a dtype) cannot carry one and are passed over; one that a class inherits does not count.
    """
    missing = []
    for name in module.__all__:
        value = getattr(module, name)
        if not (inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value)):
            continue
        text = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
        if not (text or "").strip():
            missing.append(name)
    return missing


def test_every_public_name_is_there_once() -> None:
    """`__all__` names nothing that cannot be had, also where the face loads it lazily."""
    assert [name for name in kernscope.__all__ if not hasattr(kernscope, name)] == []
    assert len(set(kernscope.__all__)) == len(kernscope.__all__)


def test_every_public_name_has_a_docstring() -> None:
    """What is public is documented."""
    assert undocumented(kernscope) == []


def test_dir_lists_every_public_name() -> None:
    """Completion in a notebook offers lazily loaded names too."""
    assert set(kernscope.__all__) <= set(dir(kernscope))


def test_a_missing_docstring_is_found() -> None:
    """The check can fail: bare functions and classes, and classes that only inherit a docstring."""

    def documented() -> None:
        """Does nothing."""

    def bare() -> None:
        pass

    class Base:
        """Has one."""

    class Derived(Base):
        pass

    names = {"documented": documented, "bare": bare, "Base": Base, "Derived": Derived, "version": "1.0"}
    assert undocumented(SimpleNamespace(__all__=list(names), **names)) == ["bare", "Derived"]
