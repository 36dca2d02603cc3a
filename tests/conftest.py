"""One flag: what is stored is written anew."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """``pytest tests/outputs tests/linter --rewrite-outputs``; then look at the difference."""
    parser.addoption("--rewrite-outputs", action="store_true", help="write the stored outputs anew")
