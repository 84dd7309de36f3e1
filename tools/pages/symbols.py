# SPDX-License-Identifier: BSD-3-Clause
"""Finds the lines of a symbol in C++ or Python, so that pages can show code without line numbers."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tree_sitter
import tree_sitter_cpp

from tools.checks.repo_checks import SPDX

COMMENTS = {**dict.fromkeys((".c", ".cpp", ".h"), ("//", "/*", "*")), **dict.fromkeys((".py", ".pyi"), ("#",))}

_CPP = tree_sitter.Language(tree_sitter_cpp.language())
# The definitions and declarations of C++ that have a name.
_DEFINITIONS = tree_sitter.Query(
    _CPP,
    """[
    (class_specifier name: (_) @name) (struct_specifier name: (_) @name) (union_specifier name: (_) @name)
    (enum_specifier name: (_) @name) (alias_declaration name: (_) @name) (concept_definition name: (_) @name)
    (type_definition declarator: (_) @name) (preproc_def name: (_) @name) (preproc_function_def name: (_) @name)
    (function_definition declarator: (_) @name) (declaration declarator: (_) @name)
    (field_declaration declarator: (_) @name) (expression_statement (call_expression function: (_) @name))
    ] @whole""",
)
_MAY_LACK_BODY = re.compile("class|struct|union|enum|function_declarator")
_SCOPES = re.compile("(class|struct|union)_specifier|namespace_definition")
# Macros before a declaration that expand to attributes, which the parser does not know.
_ATTRIBUTE_MACROS = re.compile(r"\b(OPENREG_(?:\w+_)?API|C10_\w*EXPORT|C10_API|C10_ALWAYS_INLINE|C10_UNUSED)\b")


class SymbolError(ValueError):
    """An error for a symbol that a file does not have, or for code that cannot be shown."""


class AmbiguousSymbolError(SymbolError):
    """An error for a symbol that a file has more than once."""


@dataclass(frozen=True)
class Definition:
    """A named part of a file, with the numbers of its first and last line, counted from 0."""

    name: str
    first: int
    last: int
    has_body: bool
    text: str


def find_symbol(path: Path, symbol: str) -> str:
    """Returns the definition of `symbol` with the comment directly above it, without indentation.

    `symbol` is a name, qualified as far as necessary (`Generator::seed`, `Stream.query`), or the beginning of the
    definition with a parenthesis (`TORCH_LIBRARY_IMPL(aten, PrivateUse1`, `void f(int`). A definition takes precedence
    over a declaration, and a class over its constructors. Raises SymbolError if there is no such symbol, and
    AmbiguousSymbolError if there are several.
    """
    if path.suffix not in COMMENTS:
        raise SymbolError(f"{path.name}: symbols are known in C++ and Python; use `first` and `last` here")
    text = path.read_text("utf-8")
    definitions = python_definitions(text) if path.suffix in {".py", ".pyi"} else cpp_definitions(text)
    found = [item for item in definitions if matches(item, symbol)]
    found = [item for item in found if item.has_body] or found
    found = [item for item in found if not re.search(r"\b(\w+)::\1$", item.name)] or found
    places = sorted({(item.first, item.last) for item in found})
    if not places:
        raise SymbolError(f"{path.name} has no symbol {symbol!r}")
    if len(places) > 1:
        lines = ", ".join(str(first + 1) for first, _ in places)
        raise AmbiguousSymbolError(
            f"{path.name} has {symbol!r} {len(places)} times (lines {lines}): write more of its beginning"
        )
    first, last = places[0]
    lines_of_file = text.splitlines()
    while first > 0 and lines_of_file[first - 1].strip().startswith(COMMENTS[path.suffix]):
        if SPDX in lines_of_file[first - 1]:
            break
        first -= 1
    return textwrap.dedent("\n".join(lines_of_file[first : last + 1]))


def matches(item: Definition, symbol: str) -> bool:
    """Returns True if a definition is the one that `symbol` names."""
    if "(" in symbol:
        return " ".join(item.text.split()).startswith(" ".join(symbol.split()))
    return item.name == symbol or item.name.endswith((f"::{symbol}", f".{symbol}"))


def python_definitions(text: str) -> Iterator[Definition]:
    """Yields the functions, classes and assigned names of a Python file that are not inside of a function."""

    def walk(body: list[ast.stmt], scope: str) -> Iterator[Definition]:
        for node in body:
            decorated = getattr(node, "decorator_list", [])
            first, last = min(item.lineno for item in [node, *decorated]) - 1, (node.end_lineno or node.lineno) - 1
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
            for name in (getattr(item, "id", getattr(item, "name", "")) for item in targets):
                yield Definition(f"{scope}{name}", first, last, True, ast.get_source_segment(text, node) or "")
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                inside = f"{scope}{node.name}." if isinstance(node, ast.ClassDef) else scope
                yield from walk(getattr(node, "body", []), inside)

    yield from walk(ast.parse(text).body, "")


def parse_cpp(text: str) -> tree_sitter.Tree:
    """Returns the syntax tree of C++ text. Attribute macros are replaced by spaces, so that all offsets stay."""
    blanked = _ATTRIBUTE_MACROS.sub(lambda match: " " * len(match.group()), text)
    return tree_sitter.Parser(_CPP).parse(blanked.encode())


def cpp_definitions(text: str) -> Iterator[Definition]:
    """Yields the named parts of a C++ file that are not inside of a function.

    These are functions, types, aliases, constants, macros and uses of macros.
    """
    for _, found in tree_sitter.QueryCursor(_DEFINITIONS).matches(parse_cpp(text).root_node):
        (node,), (declarator,) = found["whole"], found["name"]
        names, kind, parent = [], node.type, node.parent
        while (inner := _inside(declarator)) is not None:
            kind = declarator.type if declarator.type == "function_declarator" else kind
            declarator = inner
        while parent is not None and parent.type not in {"function_definition", "lambda_expression"}:
            scope = parent.child_by_field_name("name") if _SCOPES.fullmatch(parent.type) else None
            names += [_text(scope)] if scope is not None else []
            parent = parent.parent
        if parent is None:
            has_body = node.child_by_field_name("body") is not None or not _MAY_LACK_BODY.match(kind)
            whole = node.parent if node.parent is not None and node.parent.type == "template_declaration" else node
            last, column = whole.end_point  # a macro's node ends at the start of the next line
            name = " ".join("::".join([*reversed(names), _text(declarator)]).split())
            yield Definition(name, whole.start_point[0], last if column else last - 1, has_body, _text(whole))


def _inside(declarator: tree_sitter.Node) -> tree_sitter.Node | None:
    """Returns the declarator inside that of a function, a pointer or a reference; None for any other declarator."""
    inner = declarator.child_by_field_name("declarator")
    if inner is None and declarator.type in {"reference_declarator", "parenthesized_declarator"}:
        inner = declarator.named_children[-1]
    return inner


def _text(node: tree_sitter.Node) -> str:
    return node.text.decode() if node.text is not None else ""
