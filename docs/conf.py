# ruff: noqa: INP001 - Sphinx loads this file by its path
"""How Sphinx builds these pages."""

project = "Backwave"
author = "The Backwave authors"
copyright = f"2026, {author}"  # noqa: A001 - Sphinx's name
release = "0.1.0"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "Backwave"
