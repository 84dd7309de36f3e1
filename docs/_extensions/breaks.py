# SPDX-License-Identifier: BSD-3-Clause
"""Lets long names in tables break where a reader would break them: `OPENREG_`, `LAUNCH_`, `BLOCKING`.

Without a mark, a browser breaks a name that is wider than its cell after any letter. The mark is `<wbr>`, which is not
copied with the text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

_TABLE = re.compile(r"<table.*?</table>", re.DOTALL)
_CODE = re.compile(r'(?<=<span class="pre">)[^<]+')
# Behind signs between two words, and between two words in camel case.
_PLACE = re.compile(r"(?<=[^\W_])(?:[/.:,(=]+(?=[^\W\d])|_+(?=[^\W\d_]))|[a-z](?=[A-Z])")


def with_breaks(html: str) -> str:
    """Returns HTML whose tables have marks in their inline code."""
    return _TABLE.sub(lambda table: _CODE.sub(lambda code: _PLACE.sub(r"\g<0><wbr>", code[0]), table[0]), html)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Registers a function that adds the marks to each page before Sphinx writes it."""

    def add_breaks(
        _app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: nodes.document | None
    ) -> None:
        if "body" in context:
            context["body"] = with_breaks(context["body"])

    app.connect("html-page-context", add_breaks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
