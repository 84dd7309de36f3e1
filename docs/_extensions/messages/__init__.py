# SPDX-License-Identifier: BSD-3-Clause
"""The Sphinx directive `messages`, which lists the errors and warnings of all packages, found in their sources."""

from __future__ import annotations

import os
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_id
from sphinx.util.typing import ExtensionMetadata

from messages.cpp import texts_of_cpp
from messages.found import FileTexts, Message, messages_of
from messages.python import texts_of_python
from tools.checks.repo_checks import files
from tools.packages import discover

ROOT = Path(__file__).resolve().parents[3]


def sources(package: Path) -> list[Path]:
    """Returns the files of a package whose messages users can meet."""
    folders = [package / name for name in ("csrc", "include", "src")]
    found = [path for folder in folders for path in files(folder, {".cpp", ".h", ".py"})]
    return [path for path in found if "tests" not in path.relative_to(package).parts]


def texts_of(path: Path) -> FileTexts:
    """Returns the texts of a source file."""
    return (texts_of_python if path.suffix == ".py" else texts_of_cpp)(path.read_text("utf-8"))


def messages_of_package(package: Path) -> dict[Path, list[Message]]:
    """Returns the messages of each source file of a package, also of those that have none."""
    return messages_of({path: texts_of(path) for path in sources(package)})


class MessagesDirective(SphinxDirective):
    """Shows a section for each package, and in it the messages of each file."""

    def run(self) -> list[nodes.Node]:
        """Returns the sections."""
        sections: list[nodes.Node] = []
        for package in discover(ROOT).values():
            section = nodes.section(ids=[make_id(self.env, self.state.document, "messages", package.name)])
            section += nodes.title("", package.name)
            for path, messages in messages_of_package(package.folder).items():
                self.env.note_dependency(str(path))
                if messages:
                    link = Path(os.path.relpath(path, Path(self.env.doc2path(self.env.docname)).parent)).as_posix()
                    section += self.parse_text_to_nodes(f"[`{path.relative_to(package.folder).as_posix()}`]({link})")
                    section += nodes.bullet_list("", *map(_item, messages))
            sections.append(section)
        return sections


def _item(message: Message) -> nodes.list_item:
    kind = [nodes.literal("", message.kind), nodes.Text(": ")] if message.kind else []
    text = nodes.Text(" ".join(message.text.split()))
    # A search for a message needs its quotation marks and dashes as they are.
    return nodes.list_item("", nodes.paragraph("", "", *kind, text, support_smartquotes=False))


def setup(app: Sphinx) -> ExtensionMetadata:
    """Registers the directive with Sphinx."""
    app.add_directive("messages", MessagesDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
