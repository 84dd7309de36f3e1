# SPDX-License-Identifier: BSD-3-Clause
"""Lets pages link to documents that are no pages of the guide, as they do to any other file of the repository.

A forge follows `[text](../README.md)`; MyST takes a Markdown file for a page, and refuses one that is none. Here it is
told that such a link leads to a file, which has no sections there.
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
    """Changes each page as it is read."""

    def read(app: Sphinx, page: str, source: list[str]) -> None:
        folder = Path(app.env.doc2path(page)).parent

        def file_or_page(link: re.Match[str]) -> str:
            inside = Path(app.srcdir).resolve() in (folder / link[1]).resolve().parents
            return link[0] if inside else f"](path:{link[1]})"

        source[0] = _LINK.sub(file_or_page, source[0])

    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
