# SPDX-License-Identifier: BSD-3-Clause
"""Finds the messages in Python: exceptions, warnings, and what a command prints to the standard error."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from messages.found import FileTexts, Message, placeholder

# Functions that report their first argument, with the kind of the message. A category of warnings takes precedence.
_REPORTS = {
    "warnings.warn": "UserWarning",
    "sys.exit": "SystemExit",
    "pytest.exit": "Exit",
    "pytest.fail": "Failed",
    "print": "standard error",
}


def template(node: ast.AST) -> str:
    """Returns the text of an expression, with `<name>` for what is inserted."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(map(template, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return template(node.left) + template(node.right)
    return placeholder(ast.unparse(node.value if isinstance(node, ast.FormattedValue) else node))


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _report(node: ast.AST, results: dict[str, str]) -> tuple[str, list[ast.expr]] | None:
    """Returns the kind and the arguments of what a node raises or reports; None if it does neither."""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        name = ast.unparse(node.exc.func).rpartition(".")[2]
        return results.get(name, name), node.exc.args
    if isinstance(node, ast.Call) and (name := ast.unparse(node.func)) in _REPORTS:
        if name == "print" and all(ast.unparse(item.value) != "sys.stderr" for item in node.keywords):
            return None
        categories = [item for item in map(ast.unparse, node.args) if item.endswith("Warning")]
        return (categories or [_REPORTS[name]])[0], node.args[:1]
    return None


def _texts(node: ast.AST, results: dict[str, str]) -> Iterator[ast.expr]:
    """Yields the longest expressions in a node that are texts, without docstrings and without those of reports."""
    if _report(node, results) is not None or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return
    if isinstance(node, ast.expr) and _is_text(node):
        yield node
    else:
        for child in ast.iter_child_nodes(node):
            yield from _texts(child, results)


def _used(*nodes: ast.AST) -> set[str]:
    parts = [part for node in nodes for part in ast.walk(node)]
    called = {ast.unparse(part.func).rpartition(".")[2] + "()" for part in parts if isinstance(part, ast.Call)}
    return called | {part.id for part in parts if isinstance(part, ast.Name)}


def texts_of_python(text: str) -> FileTexts:
    """Returns the texts of a file."""
    module, found = ast.parse(text), FileTexts()
    nodes = list(ast.walk(module))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    # The types of the exceptions that functions return, which `raise function(...)` raises.
    results = {node.name: ast.unparse(node.returns) for node in functions if node.returns is not None}
    for node in nodes:
        report = _report(node, results)
        if report is not None and isinstance(node, ast.stmt | ast.expr):
            found.used |= _used(node)
            found.raised.append(Message(node.lineno, report[0], " ".join(map(template, report[1]))))
        if isinstance(node, ast.FunctionDef):
            names = [f"{node.name}()"]
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
        else:
            continue
        texts = list(_texts(node, results))
        shown = [Message(item.lineno, "", template(item)) for item in texts]
        used = _used(*texts, *(item for item in ast.walk(node) if isinstance(item, ast.Return)))
        for name in names:
            if node in module.body and isinstance(node, ast.Assign) and _is_text(node.value):
                found.constants[name].append((node.lineno, template(node.value)))
                found.sources[name].append(([], used))
            else:
                found.sources[name].append((shown, used))
    return found
