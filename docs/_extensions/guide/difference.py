# SPDX-License-Identifier: BSD-3-Clause
"""The directive `difference`: how a file differs from another one, for texts that build something step by step."""

from __future__ import annotations

import difflib
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.directives.code import container_wrapper
from sphinx.util.docutils import SphinxDirective

from guide.repository import ROOT
from guide.source import excerpt


class DifferenceDirective(SphinxDirective):
    """Shows the unified difference between two files, without their licence lines.

    The argument is the path of the newer file from the repository's root; the option `from` that of the older one.
    """

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {"from": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """The block, or an error that names what is missing."""
        new, old = self.arguments[0].strip(), self.options.get("from", "")
        texts = []
        for name in (old, new):
            path = ROOT / name
            if not path.is_file():
                raise self.error(f"difference: no file {name or '(give :from:)'}")
            self.env.note_dependency(str(path))
            texts.append(excerpt(path.read_text("utf-8"), None, None).splitlines())
        lines = list(difflib.unified_diff(texts[0], texts[1], lineterm=""))[2:]
        if not lines:
            raise self.error(f"difference: {old} and {new} are the same")
        code = "\n".join(lines)
        block = nodes.literal_block(code, code)
        block["language"] = "diff"
        self.set_source_info(block)
        wrapped: nodes.Node = container_wrapper(self, block, f"`{new}`, changed")
        return [wrapped]
