# SPDX-License-Identifier: BSD-3-Clause
"""How Sphinx builds the guide: `nox -s docs` does, with warnings as errors."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from pygments.lexers.shell import BashLexer
from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
OWN_EXTENSIONS = HERE / "_extensions"
sys.path[:0] = [str(OWN_EXTENSIONS), str(HERE.parent)]

from tools import torch_release  # noqa: E402

# The trees of all pages stay, and the collector would go through them again and again.
gc.set_threshold(1_000_000)

project = "openreg"
author = "the openreg authors"
version = release = torch_release.current()
language = "en"

extensions = [
    "myst_parser",
    "sphinx_design",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    *sorted(path.stem for path in OWN_EXTENSIONS.iterdir() if path.stem[0] not in "._"),
]
exclude_patterns = ["README.md", "tests", "_extensions", "_templates", "requirements.txt"]
templates_path = ["_templates"]

# A reference that leads nowhere is an error of the build, except to what Python, PyTorch or C explain, and to types
# that are known by their pointers only.
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!openreg_|torch_openreg|torch\.openreg).*"),
    ("c:identifier", r"\w+_t|orEvent|orGraph|orSemaphore|orStream|orSubscription"),
]

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3

# Docstrings put code in single backticks.
default_role = "literal"
autodoc_member_order = "groupwise"
autodoc_typehints = "signature"

# The buttons copy what a reader types: no output, no prompt, and no message (a block in the language `text`).
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_title = "openreg"
html_static_path = ["_static"]
html_css_files = ["guide.css"]
html_show_copyright = False
# The theme's own, and links to the same page for the other releases of PyTorch.
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "releases.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
pygments_style = "a11y-light"
pygments_dark_style = "github-dark"


def setup(app: Sphinx) -> None:
    """Takes a `console` block for commands. Pygments would take lines without a prompt for output."""
    app.add_lexer("console", BashLexer)
