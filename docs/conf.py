"""Configuration of the documentation: `python -m sphinx -W -b html docs docs/_build/html`."""

import re
import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import published_page
import site_pages

project = "kernscope"
author = "The kernscope authors"
project_copyright = "The kernscope authors, Apache-2.0"
release = installed_version("kernscope")
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = True
nitpick_ignore_regex = [
    # Other projects' names: their inventories are on the network, and the documentation builds without it.
    (r"py:.*", r"(collections|enum|fractions|inspect|networkx|np|numpy|os|pathlib|types|typing)\..*"),
    (r"py:.*", r".*\.Annotated"),
    # Of signatures whose annotations are not resolved: these classes are on the page under their full names.
    (r"py:class", r"[A-Z]\w*"),
    # The stages' own parts.
    (r"py:(func|data)", r"(best_of|find_violations|search|RULES|CALLERS_KEPT)"),
    (
        r"py:class",
        r"kernscope\.(scheduler\.policy\.problem\.Problem|scheduler\.search\.dag\.Dag|checker\.violation\.CheckableSchedule)",
    ),
    (r"py:class", r"kernscope\.machine\.parts\.(Listed|Table|Toward)"),
    (r"py:class", r"kernscope\.(backends\.report\.notebook\.Report|ir\.target\.Reach|ir\.ops\.operation\.Operation)"),
    (r"py:class", r"kernscope\.tracer\.values\.(handles\.Records|refusals\.Owner)"),
    (r"py:class", r"kernscope\.(tracer|face)\.triton\..*"),
    (r"py:class", r"kernscope\.ir\.indices\.Index"),
    # Modules of the sources, which docstrings mention for those who read on there.
    (r"py:mod", r"kernscope\..*"),
]

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"kernscope {release}"


def plain_enums(*event: Any) -> tuple[str, str | None] | None:
    """Defaults that are members of enums, written as in the source: ``<Kind.LINK: 'link'>`` is no Python."""
    signature, returned = event[-2:]
    return None if signature is None else (re.sub(r"<(\w+\.\w+): [^<>]*>", r"\1", signature), returned)


def _write_pages(folder: Path) -> None:
    site_pages.write(folder)
    (folder / "published.md").write_text(published_page.published_page(), encoding="utf-8")


def setup(app: Any) -> None:
    """The pages that are made from tables and kernels are written before any page is read."""
    app.connect("builder-inited", lambda app: _write_pages(Path(app.srcdir) / "generated"))
    app.connect("autodoc-process-signature", plain_enums)
