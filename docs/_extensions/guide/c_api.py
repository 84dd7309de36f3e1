# SPDX-License-Identifier: BSD-3-Clause
"""The Sphinx directive `c-api`, which shows the declarations of a C header, with their comments, as a reference.

A comment of the form `/* ---- Title ---- */` begins a section. The declarations before the first one form the section
"Types". The comment at the top of the file is the introduction. A function directly below another shares its comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import tree_sitter
from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_id

from guide.repository import ROOT
from tools.checks.repo_checks import SPDX
from tools.pages.symbols import parse_cpp

_SECTION = re.compile(r"/\* -+ (.+?) -+ \*/")
_CALL = re.compile(r"\b(or[A-Z]\w+)\(\)")
# A line of a list of words and their meanings: `  alloc   the N-th orMalloc() fails`.
_WORD = re.compile(r"(?m)^ {2,}(\w+) {2,}(\S.*)$")
_LIST = re.compile(r"(?m)((?:^- `\w+`: .*\n?)+)")
_TRANSPARENT = {"preproc_ifdef", "preproc_if", "linkage_specification", "declaration_list"}


@dataclass
class Entry:
    """A declaration, or one member of an enum or struct."""

    kind: str  # the name of its directive in Sphinx's domain for C
    declaration: str
    comment: str = ""
    shares_comment: bool = False  # with the entry above
    members: list[Entry] = field(default_factory=list)


@dataclass
class Section:
    """Declarations that belong together."""

    title: str
    entries: list[Entry] = field(default_factory=list)


@dataclass
class Header:
    """The content of a header."""

    introduction: str
    sections: list[Section]


def comment_text(comment: str) -> str:
    """Returns the text of a comment as Markdown, with links to functions of the API."""
    lines = [line.strip() for line in comment.strip().removeprefix("/*").removesuffix("*/").splitlines()]
    text = "\n".join(re.sub(r"^\* ?", "", line) for line in lines).strip()
    text = re.sub(r"(?m)^ *- ", "- ", text)
    text = _LIST.sub(r"\n\1\n", _WORD.sub(r"- `\1`: \2", text))
    return _CALL.sub(r"{c:func}`\1`", text)


def flat(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """Yields the top-level nodes of a header. Replaces preprocessor conditions and `extern "C"` by their contents."""
    for child in node.named_children:
        if child.type in _TRANSPARENT:
            yield from flat(child)
        else:
            yield child


def text_of(node: tree_sitter.Node | None) -> str:
    """Returns the source of a node, in one line."""
    return " ".join(node.text.decode().split()) if node is not None and node.text is not None else ""


def entry_of(node: tree_sitter.Node) -> Entry | None:
    """Returns the declaration in a node; None if the reference leaves it out."""
    text = text_of(node).removesuffix(";")
    if node.type == "type_definition":
        kind = node.child_by_field_name("type")
        name = text_of(node.child_by_field_name("declarator"))
        if kind is not None and kind.type in {"enum_specifier", "struct_specifier"}:
            body = kind.child_by_field_name("body")
            if body is not None:
                part = "enumerator" if kind.type == "enum_specifier" else "member"
                whole = "enum" if kind.type == "enum_specifier" else "struct"
                return Entry(whole, name, members=members_of(body, part))
        return Entry("type", text.removeprefix("typedef "))
    if node.type == "declaration":
        return Entry("function", text)
    if node.type == "preproc_def" and node.child_by_field_name("value") is not None:
        return Entry("macro", text_of(node.child_by_field_name("name")), f"`{text}`")
    return None


def members_of(body: tree_sitter.Node, kind: str) -> list[Entry]:
    """Returns the members of an enum or struct. A comment belongs to the member in its line, or else to the next."""
    found: list[Entry] = []
    last_row, above = -1, ""
    for child in body.named_children:
        if child.type == "comment":
            if child.start_point[0] == last_row:
                found[-1].comment = comment_text(text_of_comment(child))
            else:
                above = comment_text(text_of_comment(child))
        else:
            found.append(Entry(kind, text_of(child).removesuffix(";"), above))
            last_row, above = child.end_point[0], ""
    return found


def text_of_comment(node: tree_sitter.Node) -> str:
    """Returns the text of a comment, with its line breaks."""
    return node.text.decode() if node.text is not None else ""


def read_header(text: str) -> Header:
    """Returns the declarations of a header, in its order."""
    header = Header("", [Section("Types")])
    comment, end, last_row = "", -1, -1
    for node in flat(parse_cpp(text).root_node):
        if node.type == "comment":
            words = text_of_comment(node)
            title = _SECTION.fullmatch(words)
            if title is not None:
                header.sections.append(Section(title.group(1)))
            elif SPDX not in words and not header.introduction:
                header.introduction = comment_text(words)
            else:
                comment, end = comment_text(words), node.end_point[0]
                # A comment behind a declaration belongs to that declaration.
                entries = header.sections[-1].entries
                if entries and node.start_point[0] == last_row:
                    entries[-1].comment, comment = comment, ""
            continue
        entry = entry_of(node)
        if entry is not None:
            entries = header.sections[-1].entries
            if node.start_point[0] == end + 1:
                entry.comment = "\n\n".join(filter(None, [comment, entry.comment]))
            elif entries and node.start_point[0] == last_row + 1:
                entry.shares_comment = entry.kind == entries[-1].kind == "function"
            entries.append(entry)
            row, column = node.end_point
            last_row = row if column else row - 1  # a macro ends where the next line begins
        comment = ""
    return header


def markdown(entry: Entry, fence: str = "````") -> str:
    """Returns an entry as a directive of Sphinx's domain for C."""
    inner = [markdown(member, fence[1:]) for member in entry.members]
    return "\n".join([f"{fence}{{c:{entry.kind}}} {entry.declaration}", "", entry.comment, "", *inner, fence, ""])


def with_shared_comments(parts: list[nodes.Node], entries: list[Entry]) -> list[nodes.Node]:
    """Returns the nodes of entries, those that share a comment together above it."""
    declarations = [part for part in parts if isinstance(part, addnodes.desc)]
    for entry, below, above in reversed(list(zip(entries[1:], declarations[1:], declarations, strict=False))):
        if entry.shares_comment:
            above[-1:-1] = below[:-1]  # the last child is the comment
            parts.remove(below)
    return parts


class CApiDirective(SphinxDirective):
    """Shows the reference of a header, whose path is relative to the repository's root."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Returns the introduction, and a section for each group of declarations."""
        path = ROOT / self.arguments[0]
        if not path.is_file():
            raise self.error(f"c-api: no file {self.arguments[0]}")
        self.env.note_dependency(str(path))
        header = read_header(path.read_text("utf-8"))
        found = self.parse_text_to_nodes(header.introduction)
        for section in header.sections:
            target = nodes.section(ids=[make_id(self.env, self.state.document, "c-api", section.title)])
            target += nodes.title("", section.title)
            parts = self.parse_text_to_nodes("\n".join(markdown(entry) for entry in section.entries))
            target += with_shared_comments(parts, section.entries)
            found.append(target)
        return found
