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

from tools.repo_checks import SPDX

CPP_SUFFIXES = {".c", ".cpp", ".h"}
PYTHON_SUFFIXES = {".py", ".pyi"}

_CPP = tree_sitter.Language(tree_sitter_cpp.language())
# Macros in front of a declaration, which only the preprocessor knows to be attributes.
_ATTRIBUTE_MACROS = re.compile(r"\b(OPENREG_(?:\w+_)?API|C10_\w*EXPORT|C10_API|C10_ALWAYS_INLINE|C10_UNUSED)\b")
_TYPES = {"class_specifier", "struct_specifier", "union_specifier", "enum_specifier"}
_NAMED = {"alias_declaration", "type_definition", "preproc_def", "preproc_function_def", "concept_definition"}
_CONTAINERS = {
    *("translation_unit", "declaration_list", "field_declaration_list", "linkage_specification", "ERROR"),
    *("preproc_if", "preproc_ifdef", "preproc_elif", "preproc_else", "compound_statement"),
}


class SymbolError(ValueError):
    """A symbol that a file does not have."""


class AmbiguousSymbolError(SymbolError):
    """A symbol that a file has more than once."""


@dataclass(frozen=True)
class Definition:
    """Something with a name, by the lines it takes (counted from 0, the last one included)."""

    name: str
    first: int
    last: int
    has_body: bool
    text: str


def find_symbol(path: Path, symbol: str) -> str:
    """The definition of `symbol`, with the comment directly above it, moved to the left margin.

    `symbol` is a name, as qualified as need be (`Guard::exchangeDevice`, `Stream.query`), or the beginning of the
    definition, which has a parenthesis (`TORCH_LIBRARY_IMPL(aten, PrivateUse1`, `void f(int`). Of a declaration and a
    definition, the definition is meant; of a class and its constructors, the class. Raises SymbolError if there
    is none, AmbiguousSymbolError if there are several.
    """
    text = path.read_text("utf-8")
    comments: tuple[str, ...]
    if path.suffix in CPP_SUFFIXES:
        definitions, comments = list(cpp_definitions(text)), ("//", "/*", "*")
    elif path.suffix in PYTHON_SUFFIXES:
        definitions, comments = list(python_definitions(text)), ("#",)
    else:
        raise SymbolError(f"{path.name}: symbols are known in C++ and Python; use `first` and `last` here")
    found = [item for item in definitions if matches(item, symbol)]
    found = [item for item in found if item.has_body] or found
    found = [item for item in found if not is_constructor(item)] or found
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
    while first > 0 and lines_of_file[first - 1].strip().startswith(comments):
        if SPDX in lines_of_file[first - 1]:
            break
        first -= 1
    return textwrap.dedent("\n".join(lines_of_file[first : last + 1]))


def is_constructor(item: Definition) -> bool:
    """Whether the name is that of a class twice: `Guard::Guard`."""
    parts = item.name.split("::")
    return len(parts) > 1 and parts[-1] == parts[-2]


def matches(item: Definition, symbol: str) -> bool:
    """Whether a definition is what is asked for."""
    if "(" in symbol:
        return " ".join(item.text.split()).startswith(" ".join(symbol.split()))
    separator = "::" if "::" in item.name else "."
    return item.name == symbol or item.name.endswith(separator + symbol)


def python_definitions(text: str) -> Iterator[Definition]:
    """Functions, classes and assigned names of a Python file."""
    lines = text.splitlines()

    def walk(body: list[ast.stmt], scope: str) -> Iterator[Definition]:
        for node in body:
            names: list[str] = []
            first = node.lineno
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names = [node.name]
                first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            elif isinstance(node, ast.Assign):
                names = [item.id for item in node.targets if isinstance(item, ast.Name)]
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names = [node.target.id]
            last = node.end_lineno or node.lineno
            for name in names:
                content = "\n".join(lines[node.lineno - 1 : last]).strip()
                yield Definition(scope + name, first - 1, last - 1, True, content)
            if isinstance(node, ast.ClassDef):
                yield from walk(node.body, f"{scope}{node.name}.")
            elif isinstance(node, ast.If | ast.Try | ast.With):
                yield from walk(node.body, scope)

    yield from walk(ast.parse(text).body, "")


def parse_cpp(text: str) -> tree_sitter.Tree:
    """The syntax tree of C++ text; attribute macros are blanked out, all offsets stay."""
    blanked = _ATTRIBUTE_MACROS.sub(lambda match: " " * len(match.group()), text)
    return tree_sitter.Parser(_CPP).parse(blanked.encode())


def cpp_definitions(text: str) -> Iterator[Definition]:
    """Functions, types, aliases, constants, macros and uses of macros of a C++ file, outside of functions."""
    yield from _walk(parse_cpp(text).root_node, "")


def _walk(node: tree_sitter.Node, scope: str) -> Iterator[Definition]:
    for child in node.named_children:
        yield from _definitions_of(child, child, scope)


def _definitions_of(node: tree_sitter.Node, whole: tree_sitter.Node, scope: str) -> Iterator[Definition]:
    """What `node` defines; `whole` is the node with the template header, if any."""
    kind = node.type
    if kind == "template_declaration":
        for child in node.named_children:
            if child.type != "template_parameter_list":
                yield from _definitions_of(child, whole, scope)
    elif kind == "namespace_definition":
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if body is not None:
            yield from _walk(body, f"{scope}{_text(name)}::" if name is not None else scope)
    elif kind in _TYPES:
        yield from _type(node, whole, scope)
    elif kind in _NAMED:
        name = node.child_by_field_name("name") or node.child_by_field_name("declarator")
        if name is not None:
            yield _definition(scope + _text(name), whole, True)
        type_node = node.child_by_field_name("type")
        if type_node is not None and type_node.type in _TYPES:
            yield from _type(type_node, whole, scope)
    elif kind in {"function_definition", "declaration", "field_declaration"}:
        yield from _declared(node, whole, scope)
    elif kind == "expression_statement" and node.named_children and node.named_children[0].type == "call_expression":
        called = node.named_children[0].child_by_field_name("function")
        if called is not None:
            yield _definition(scope + _text(called), whole, True)
    elif kind in _CONTAINERS:
        yield from _walk(node, scope)


def _type(node: tree_sitter.Node, whole: tree_sitter.Node, scope: str) -> Iterator[Definition]:
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name is not None:
        yield _definition(scope + _text(name), whole, body is not None)
    if body is not None and node.type != "enum_specifier":
        yield from _walk(body, f"{scope}{_text(name)}::" if name is not None else scope)


def _declared(node: tree_sitter.Node, whole: tree_sitter.Node, scope: str) -> Iterator[Definition]:
    type_node = node.child_by_field_name("type")
    if type_node is not None and type_node.type in _TYPES and type_node.child_by_field_name("body") is not None:
        yield from _type(type_node, whole, scope)
    for declarator in node.children_by_field_name("declarator"):
        is_function, name = _declarator_name(declarator)
        if name:
            has_body = node.child_by_field_name("body") is not None or not is_function
            yield _definition(scope + name, whole, has_body)


def _declarator_name(node: tree_sitter.Node) -> tuple[bool, str]:
    """Whether a declarator is that of a function, and the name it declares."""
    is_function = False
    current: tree_sitter.Node | None = node
    while current is not None:
        is_function = is_function or current.type == "function_declarator"
        inner = current.child_by_field_name("declarator")
        if inner is None and current.type in {"reference_declarator", "parenthesized_declarator"}:
            inner = current.named_children[-1] if current.named_children else None
        if inner is None:
            return is_function, _text(current)
        current = inner
    return is_function, ""


def _definition(name: str, whole: tree_sitter.Node, has_body: bool) -> Definition:
    first, last = whole.start_point[0], whole.end_point[0]
    if whole.end_point[1] == 0 and last > first:  # a macro's node ends at the start of the next line
        last -= 1
    return Definition(" ".join(name.split()), first, last, has_body, _text(whole))


def _text(node: tree_sitter.Node | None) -> str:
    return node.text.decode() if node is not None and node.text is not None else ""
