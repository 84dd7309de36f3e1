# SPDX-License-Identifier: BSD-3-Clause
"""Lets pages of the guide link to Markdown files of the repository that are no pages of the guide.

A forge follows `[text](../README.md)`. MyST takes every Markdown file for a page, and rejects a link to one that is no
page. This extension changes such a link into one to a file, `path:../README.md`, without the section.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

_LINK = re.compile(r"\]\((\.\./[^)#\s]+\.md)(?:#[^)\s]*)?\)")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Registers a function that changes the links of each page when Sphinx reads it."""

    def read(app: Sphinx, page: str, source: list[str]) -> None:
        folder = Path(app.env.doc2path(page)).parent

        def file_or_page(link: re.Match[str]) -> str:
            inside = Path(app.srcdir).resolve() in (folder / link[1]).resolve().parents
            return link[0] if inside else f"](path:{link[1]})"

        source[0] = _LINK.sub(file_or_page, source[0])

    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
