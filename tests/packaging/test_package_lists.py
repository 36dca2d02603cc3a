"""What pyproject.toml lists by name agrees with the folders and files that are there."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOT_SHIPPED = {"benchmarks", "build", "dist", "docs", "tests"}


def config() -> dict[str, Any]:
    """The tool tables of pyproject.toml."""
    tools: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    return tools


def package_folders(root: Path) -> list[str]:
    """Dotted names of the packages under `root`, which is itself the package `kernscope`.

    Hidden folders (environments, caches, the link for type checkers) and what is not shipped are left out.
    """
    found = ["kernscope"] if (root / "__init__.py").is_file() else []
    pending = [(folder, f"kernscope.{folder.name}") for folder in root.iterdir() if folder.name not in NOT_SHIPPED]
    while pending:
        folder, name = pending.pop()
        if not (folder / "__init__.py").is_file() or folder.is_symlink() or folder.name.startswith("."):
            continue
        found.append(name)
        pending.extend((child, f"{name}.{child.name}") for child in folder.iterdir())
    return sorted(found)


def folders_without_init(root: Path) -> list[str]:
    """Folders inside packages that hold Python files but no `__init__.py`: no wheel would hold them."""
    packages = [root.joinpath(*name.split(".")[1:]) for name in package_folders(root)]
    children = [child for package in packages for child in package.iterdir() if child.is_dir()]
    return sorted(
        str(child.relative_to(root))
        for child in children
        if child.name not in NOT_SHIPPED | {"__pycache__"}
        and not child.name.startswith(".")
        and not (child / "__init__.py").exists()
        and any(child.glob("*.py"))
    )


def shipped_data(root: Path, package_data: dict[str, list[str]]) -> set[Path]:
    """Files that the table `package-data` puts into a wheel, relative to `root`."""
    return {
        path.relative_to(root)
        for package, patterns in package_data.items()
        for pattern in patterns
        for path in root.joinpath(*package.split(".")[1:]).glob(pattern)
    }


def data_files(root: Path) -> set[Path]:
    """Files inside the subpackages that are not Python source, relative to `root`."""
    tops = [root / name.split(".")[1] for name in package_folders(root) if name.count(".") == 1]
    return {
        path.relative_to(root)
        for top in tops
        for path in top.rglob("*")
        if path.is_file() and path.suffix != ".py" and not path.name.startswith(".") and "__pycache__" not in path.parts
    }


def test_the_packages_list_equals_the_folders_with_an_init() -> None:
    """A folder that is not listed would be left out of the wheel in silence."""
    assert sorted(config()["setuptools"]["packages"]) == package_folders(ROOT)


def test_every_folder_of_sources_has_an_init() -> None:
    """A folder of modules without `__init__.py` would escape the comparison above, and the wheel."""
    assert folders_without_init(ROOT) == []


def test_every_data_file_inside_the_packages_is_shipped() -> None:
    """Presets, templates and scripts lie in the wheel beside the code that reads them."""
    assert data_files(ROOT) - shipped_data(ROOT, config()["setuptools"]["package-data"]) == set()


def test_the_package_says_that_it_is_typed() -> None:
    """`py.typed` lies at the root and is listed as data."""
    assert Path("py.typed") in shipped_data(ROOT, config()["setuptools"]["package-data"])


def test_mypy_checks_every_package_and_every_module_of_the_root() -> None:
    """mypy is run bare: what is not listed by name is not checked."""
    mypy = config()["mypy"]
    top_level = [name for name in package_folders(ROOT) if name.count(".") == 1]
    modules = [f"kernscope.{path.stem}" for path in ROOT.glob("*.py") if path.name != "__init__.py"]
    assert sorted(mypy["packages"]) == top_level
    assert sorted(mypy["modules"]) == sorted(["kernscope", *modules])


def test_type_checkers_find_the_package_through_a_relative_link() -> None:
    """`.typing/kernscope` leads back to the root, wherever the checkout lies."""
    link = ROOT / ".typing" / "kernscope"
    if not link.parent.exists():
        pytest.skip("an sdist holds no link for type checkers")
    assert link.is_symlink()
    assert str(link.readlink()) == ".."


def test_no_source_may_be_imported_under_its_bare_name() -> None:
    """Ruff bans `import ir` and its like for every folder and module of the root."""
    banned = config()["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    folders = {name.split(".")[1] for name in package_folders(ROOT) if "." in name}
    modules = {path.stem for path in ROOT.glob("*.py") if not path.stem.startswith("__")}
    assert folders | modules <= set(banned)


def test_an_unlisted_folder_is_found(tmp_path: Path) -> None:
    """The comparison can fail: nested packages count; tests, hidden folders and links do not."""
    for folder in (".", "ir", "ir/ops", "tests", ".hidden", "linter"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "again").symlink_to(tmp_path / "ir")
    (tmp_path / "linter" / "rules").mkdir()
    (tmp_path / "linter" / "rules" / "scratch.py").touch()
    assert package_folders(tmp_path) == ["kernscope", "kernscope.ir", "kernscope.ir.ops", "kernscope.linter"]
    assert folders_without_init(tmp_path) == ["linter/rules"]


def test_an_unshipped_data_file_is_found(tmp_path: Path) -> None:
    """The comparison can fail: a preset outside the patterns is not shipped."""
    (tmp_path / "__init__.py").touch()
    (tmp_path / "scheduler").mkdir()
    (tmp_path / "scheduler" / "__init__.py").touch()
    (tmp_path / "scheduler" / "preset.toml").touch()
    assert data_files(tmp_path) == {Path("scheduler/preset.toml")}
    assert shipped_data(tmp_path, {"kernscope": ["*.toml"]}) == set()
    assert shipped_data(tmp_path, {"kernscope.scheduler": ["*.toml"]}) == data_files(tmp_path)
