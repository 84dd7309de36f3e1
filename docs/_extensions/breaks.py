# SPDX-License-Identifier: BSD-3-Clause
"""Lets inline code break where a reader would break it.

Without a mark, a browser breaks a name that is wider than its cell or its line after any letter, and an option after
its hyphens: `pytest --` and `device`. The mark is `<wbr>`, which is not copied with the text. A name in a table has it
between its words: `OPENREG_`, `LAUNCH_`, `BLOCKING`. Elsewhere a line is wider, and only paths have it, after their
slashes. The class of options is `option-name`; the style sheet keeps them whole.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

_TABLE = re.compile(r"(<table.*?</table>)", re.DOTALL)
_CODE = re.compile(r'(?<=<span class="pre">)[^<]+')
# Behind signs between two words, but not before an ending such as `.cpp`, and between two words in camel case.
_WORD = re.compile(r"(?<=[^\W_])(?:[/.:,(=]+(?=[^\W\d])|_+(?=[^\W\d_]))(?!\w{1,3}$)|[a-z](?=[A-Z])")
# Behind a single slash, not behind those of an address.
_FOLDER = re.compile(r"(?<=\w)/(?=\w)")
_OPTION = re.compile(r'<span class="pre">(?=--?[a-z])')


def with_breaks(html: str) -> str:
    """Returns HTML whose inline code has marks, and whose options have their class."""

    def marked(part: str, place: re.Pattern[str]) -> str:
        return _CODE.sub(lambda code: place.sub(r"\g<0><wbr>", code[0]), part)

    parts = [marked(part, _WORD if part.startswith("<table") else _FOLDER) for part in _TABLE.split(html)]
    return _OPTION.sub('<span class="pre option-name">', "".join(parts))


def setup(app: Sphinx) -> ExtensionMetadata:
    """Registers a function that adds marks and classes to each page before Sphinx writes it."""

    def add(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: nodes.document | None) -> None:
        if "body" in context:
            context["body"] = with_breaks(context["body"])

    app.connect("html-page-context", add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
