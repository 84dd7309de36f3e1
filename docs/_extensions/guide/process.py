# SPDX-License-Identifier: BSD-3-Clause
"""Shows where the tests of a page begin a new process: at comments `% new process`, which may name settings."""

from __future__ import annotations

from docutils import nodes
from sphinx.transforms import SphinxTransform

from guide.repository import NEW_PROCESS


class NewProcess(SphinxTransform):
    """Replaces such comments by visible text, because code that a reader copies has to run as in the tests."""

    default_priority = 300

    def apply(self, **_options: object) -> None:
        """Replaces the comments of a page."""
        for comment in list(self.document.findall(nodes.comment)):
            match = NEW_PROCESS.fullmatch(comment.astext().strip())
            if match is None:
                continue
            label = nodes.paragraph("", "new process", classes=["new-process"])
            if match.group(1):
                label += nodes.Text(" with ")
                label += nodes.literal("", match.group(1))
            comment.replace_self(label)
