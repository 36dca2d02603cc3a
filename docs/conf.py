"""Configuration of the documentation: `python -m sphinx -W -b html docs docs/_build/html`."""

from importlib.metadata import version as installed_version

project = "kernscope"
author = "The kernscope authors"
project_copyright = "The kernscope authors, Apache-2.0"
release = installed_version("kernscope")
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = True

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"kernscope {release}"
