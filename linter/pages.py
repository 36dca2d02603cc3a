"""The rules' documentation pages, as files: ``python -m kernscope.linter.pages docs/rules`` writes them anew."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..ir.errors import ERRORS
from .lint import explain
from .rules import RULES

__all__ = ["rule_pages", "write_pages"]


def rule_pages() -> dict[str, str]:
    """By file name the text of every page: ``index.md``, one page for each rule, and one for all errors."""
    rows = "".join(
        f"| [{rule.code}]({rule.code}.md) | {rule.name} | {rule.severity} | {rule.summary} |\n"
        for rule in RULES.values()
    )
    names = "\n".join(RULES)
    index = (
        "# Rules\n\n"
        "What the linter knows. `kernscope explain CODE` prints the same pages. Where a kernel cannot be traced, or "
        "its file cannot be imported, there are [errors](errors.md) in the place of findings.\n\n"
        f"| code | name | default | fires when |\n|---|---|---|---|\n{rows}\n"
        f"```{{toctree}}\n:hidden:\n\n{names}\nerrors\n```\n"
    )
    return {"index.md": index, "errors.md": _error_page(), **{f"{code}.md": explain(code) for code in RULES}}


def _error_page() -> str:
    sections = [explain(code).replace("\n## ", "\n### ").replace("# ", "## ", 1) for code in ERRORS]
    head = (
        "# Errors\n\n"
        "Mistakes that end a command or a trace, each with a code of its own. In the outputs of `kernscope lint` they "
        "stand beside the findings, at the line that made them; `kernscope explain CODE` prints the same text.\n\n"
    )
    return head + "\n".join(sections)


def write_pages(folder: Path) -> None:
    """Write all pages into a folder, which is made where it does not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in rule_pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m kernscope.linter.pages", description=write_pages.__doc__)
    parser.add_argument("folder", type=Path, help="where the pages go: docs/rules")
    write_pages(parser.parse_args().folder)
