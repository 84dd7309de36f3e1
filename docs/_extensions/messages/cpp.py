# SPDX-License-Identifier: BSD-3-Clause
"""Finds the messages in C++: failed checks, exceptions, warnings, and failures that later calls report."""

from __future__ import annotations

import re
from collections.abc import Iterator

import tree_sitter

from messages.found import FileTexts, Message, placeholder
from tools.pages.symbols import parse_cpp

# Macros that raise or warn: what Python shows, and the number of arguments before the message. An empty kind stands for
# that which the last of these arguments names.
_REPORTS = {
    "TORCH_CHECK": ("RuntimeError", 1),
    "TORCH_CHECK_INDEX": ("IndexError", 1),
    "TORCH_CHECK_NOT_IMPLEMENTED": ("NotImplementedError", 1),
    "TORCH_CHECK_TYPE": ("TypeError", 1),
    "TORCH_CHECK_VALUE": ("ValueError", 1),
    "TORCH_CHECK_WITH": ("torch.OutOfMemoryError", 2),
    "OPENREG_CHECK_IMPLEMENTED_SINCE_14": ("NotImplementedError", 1),
    "OPENREG_CHECK_IMPLEMENTED_SINCE_15": ("NotImplementedError", 1),
    "OPENREG_CHECK_TYPE_SINCE_14": ("TypeError", 1),
    "OPENREG_DRIVER_CHECK": ("", 2),
    "C10_THROW_ERROR": ("", 1),
    "PyErr_Format": ("", 1),
    "TORCH_WARN": ("UserWarning", 0),
    "TORCH_WARN_ONCE": ("UserWarning", 0),
}
# Functions that keep a reason, which a later call reports.
_KEEPS = {
    *("abort", "add_context", "end", "fail", "fail_device", "invalidate", "note_mistake", "record_failure", "refuse"),
    *("report", "shut_down"),
}
# What Python shows for the driver's codes, as openreg/runtime/status.h says; RuntimeError for all others.
_CODES = {
    "orErrorMemoryAllocation": "torch.OutOfMemoryError",
    "orErrorLaunchFailure": "torch.AcceleratorError",
    "orErrorDeviceLost": "torch.AcceleratorError",
    "orErrorStreamCaptureUnsupported": "torch.AcceleratorError",
    "orErrorStreamCaptureInvalidated": "torch.AcceleratorError",
    "orErrorInvalidValue": "ValueError",
    "orErrorNotSupported": "NotImplementedError",
}
_STRINGS = {"string_literal", "raw_string_literal", "concatenated_string"}
_DEFINITIONS = {"function_definition", "init_declarator", "assignment_expression"}
# Functions that concatenate or convert their arguments.
_JOINS = {"join", "str", "string", "to_string", "move"}


def _source(node: tree_sitter.Node | None) -> str:
    return node.text.decode() if node is not None and node.text is not None else ""


def _nodes(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    yield node
    for child in node.named_children:
        yield from _nodes(child)


def _arguments(node: tree_sitter.Node) -> list[tree_sitter.Node]:
    given = node.child_by_field_name("arguments")
    return [item for item in given.named_children if item.type != "comment"] if given is not None else []


def _called(node: tree_sitter.Node) -> str:
    """Returns the name of the function or macro that a node calls, without its scope or object."""
    if node.type != "call_expression":
        return ""
    return re.split(r"::|\.|->", re.sub(r"<.*>", "", _source(node.child_by_field_name("function"))))[-1]


def template(node: tree_sitter.Node) -> str:
    """Returns the text of an expression, with `<name>` for what is inserted."""
    if node.type in {"string_literal", "char_literal"}:
        return re.sub(r"\\(.)", lambda escape: {"n": "\n"}.get(escape[1], escape[1]), _source(node)[1:-1])
    if node.type in {"concatenated_string", "parenthesized_expression"} or (
        node.type == "binary_expression" and _source(node.child_by_field_name("operator")) == "+"
    ):
        return "".join(map(template, node.named_children))
    if _called(node) in _JOINS:
        return "".join(map(template, _arguments(node)))
    return placeholder(re.sub(r"static_cast<[^<>]*>\((.*?)\)|->", lambda found: found[1] or ".", _source(node)))


def _is_text(node: tree_sitter.Node) -> bool:
    if node.type == "binary_expression" or _called(node) in _JOINS:
        parts = node.named_children if node.type == "binary_expression" else _arguments(node)
        return any(map(_is_text, parts))
    return node.type in _STRINGS


def _report(node: tree_sitter.Node) -> tuple[str, list[tree_sitter.Node]] | None:
    """Returns the kind and the parts of what a node throws, warns of or keeps; None if it does none of these."""
    if node.type == "throw_statement" and node.named_children and _arguments(node.named_children[0]):
        thrown = _source(node.named_children[0].child_by_field_name("function"))
        arguments = _arguments(node.named_children[0])
        return _exception(arguments[0]) if thrown == "Error" else thrown.replace(
            "c10::Error", "RuntimeError"
        ), arguments
    name, arguments = _called(node), _arguments(node)
    if name in _KEEPS:
        return "", arguments
    if name not in _REPORTS:
        return None
    kind, before = _REPORTS[name]
    return kind or _exception(arguments[before - 1]), arguments[before:]


def _exception(code: tree_sitter.Node) -> str:
    """Returns the exception that the driver's code, or the name of a type, becomes."""
    name = _source(code).removeprefix("PyExc_")
    return _CODES.get(name, "RuntimeError") if name.startswith("or") else name


def _texts(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """Yields the longest expressions in a node that are texts, without those of reports."""
    if _report(node) is not None:
        return
    if _is_text(node):
        yield node
    else:
        for child in node.named_children:
            yield from _texts(child)


def _used(*nodes: tree_sitter.Node) -> set[str]:
    parts = [part for node in nodes for part in _nodes(node)]
    called = {f"{_called(part)}()" for part in parts if part.type == "call_expression"}
    return called | {_source(part) for part in parts if part.type == "identifier"}


def texts_of_cpp(text: str) -> FileTexts:
    """Returns the texts of a file."""
    found = FileTexts()
    for node in _nodes(parse_cpp(text).root_node):
        line = node.start_point[0] + 1
        if (report := _report(node)) is not None:
            kind, parts = report
            found.used |= _used(*parts)
            places = [place for place, part in enumerate(parts) if _is_text(part)]
            if places and (not kind or node.type == "throw_statement"):
                # The other arguments of a failure that is thrown or kept are codes, objects, and what printf() inserts.
                parts = parts[places[0] : places[-1] + 1]
            found.raised.append(Message(line, kind, "".join(map(template, parts))))
        if node.type in _DEFINITIONS:
            # The declarator of a function may have parameters, and that of a variable a size.
            declared = _source(node.child_by_field_name("declarator") or node.child_by_field_name("left"))
            name = re.findall(r"\w*", re.split(r"[(\[]", declared)[0].rstrip())[-2:][0]
            texts = list(_texts(node))
            # A function gives what it returns, a variable what it is assigned.
            given = [item for item in _nodes(node) if item.type == "return_statement"]
            used = _used(*texts, *given) if node.type == "function_definition" else _used(node)
            shown = [Message(item.start_point[0] + 1, "", template(item)) for item in texts]
            value = node.child_by_field_name("value")
            if node.type == "function_definition":
                found.sources[f"{name}()"].append((shown, used))
            elif value is not None and _is_text(value) and re.match("k[A-Z]", name):
                found.constants[name].append((line, template(value)))
                found.sources[name].append(([], used))
            else:
                found.sources[name].append((shown, used))
    return found
