# SPDX-License-Identifier: BSD-3-Clause
"""Reads the program's source around a line: the function, and the ``with`` block that enters a stream."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator
from typing import NamedTuple

from openreg_sanitizer.finding import Frame

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@functools.lru_cache(maxsize=64)
def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.Module([], [])


def _source(frame: Frame) -> str:
    """Returns the text of a frame's file, or an empty text if it has none."""
    return "".join(linecache.getlines(frame.file))


def _around(frame: Frame) -> list[ast.stmt | ast.expr]:
    """Returns the function of a frame, if it is in one, and what in it surrounds the frame's line, outermost first."""
    found: list[ast.stmt | ast.expr] = []
    node: ast.AST | None = _parse(_source(frame))
    while node is not None:
        if isinstance(node, _Function) and getattr(node, "name", "<lambda>") == frame.function:
            found.clear()
        if isinstance(node, ast.stmt | ast.expr):
            found.append(node)
        node = next((child for child in _children(node) if _has(child, frame.line)), None)
    return found


def _children(node: ast.AST) -> Iterator[ast.stmt | ast.expr]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.expr):
            yield child
        else:  # a part that has no lines of its own, such as a handler of exceptions
            yield from _children(child)


def _has(node: ast.stmt | ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def mentions(frame: Frame, variable: str) -> bool:
    """Returns True if the function of a frame uses a variable, a parameter or an attribute of this name.

    Only the frame's line counts if its file is not Python, as where a document's code is executed.
    """
    around = _around(frame)
    return any(_text(node) == variable for node in ast.walk(around[0] if around else _parse(frame.source)))


def module_of_streams(frame: Frame) -> str:
    """Returns the module by which a frame's file names streams: ``torch.accelerator`` if it does not name openreg's."""
    source = _source(frame)
    return "torch.accelerator" if "torch.accelerator" in source and "torch.openreg" not in source else "torch.openreg"


def leaves(frame: Frame) -> bool:
    """Returns True if a frame's line is in a statement that ends its function, so that no line can follow it."""
    around = [node for node in _around(frame) if isinstance(node, ast.stmt)]
    return bool(around) and isinstance(around[-1], ast.Return | ast.Raise)


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.arg):
        return node.arg
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""


class StreamBlock(NamedTuple):
    """A ``with`` block that enters a stream."""

    stream: str  # the stream's name in the function of the block
    begin: int  # the first and the last line
    end: int


def entering(frame: Frame, stream: str) -> StreamBlock | None:
    """Returns the ``with`` block around a frame's line that enters a stream, or None.

    ``stream`` is the stream's name in that function. Without a name, the block is the innermost one that enters any
    stream, as far as the source shows this.
    """
    blocks = [node for node in reversed(_around(frame)) if isinstance(node, ast.With | ast.AsyncWith)]
    entered = [(block, value) for block in blocks for item in block.items for value in _entered(item.context_expr)]
    if stream:
        # A call of the program may enter the stream, too, as in `with self.side_stream():`.
        found = [block for block, value in entered if ast.unparse(value) == stream]
        found += [block for block in blocks if any(not _is_of_torch(item.context_expr) for item in block.items)]
        return StreamBlock(stream, *_lines(found[0])) if found else None
    module = _parse(_source(frame))
    named = [(block, value) for block, value in entered if isinstance(value, ast.Name | ast.Attribute)]
    for block, value in named:
        is_argument = all(value is not item.context_expr for item in block.items)
        if is_argument or _is_made(module, ast.unparse(value)):
            return StreamBlock(ast.unparse(value), *_lines(block))
    return None


def _lines(node: ast.stmt) -> tuple[int, int]:
    return node.lineno, node.end_lineno or node.lineno


def _entered(context: ast.expr) -> list[ast.expr]:
    """Returns what a context may enter: itself, or the argument of a call such as ``torch.openreg.stream(side)``."""
    if isinstance(context, ast.Call):
        return context.args if ast.unparse(context.func).rpartition(".")[2] == "stream" else []
    return [context]


def _is_of_torch(context: ast.expr) -> bool:
    return ast.unparse(context).startswith("torch.")


def _is_made(module: ast.Module, name: str) -> bool:
    """Returns True if the module assigns a stream to this name: a new one, or the result of, say, ``side_stream()``."""
    return any(
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and "stream" in ast.unparse(node.value.func).rpartition(".")[2].lower()
        and name in map(ast.unparse, node.targets)
        for node in ast.walk(module)
    )
