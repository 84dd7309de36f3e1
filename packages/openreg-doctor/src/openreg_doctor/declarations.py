# SPDX-License-Identifier: BSD-3-Clause
"""Reads PyTorch's interfaces for backends from the headers and sources of a torch, without import and compiler.

An interface is a C++ class whose virtual functions a backend overrides, or a Python class whose methods it overrides.
Signatures leave out what callers cannot see: of C++ parameters names and defaults, of Python parameters types and
defaults. Overloads of one name share one entry.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .table import FOLDER, HookGroup

# The record of interfaces, a file beside hooks.toml: release of torch -> group of hooks.toml -> function -> signature.
RECORD = "interfaces.json"

Interface = dict[str, str]  # function -> signature

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ATTRIBUTE = re.compile(r"\[\[.*?\]\]")
_VIRTUAL = re.compile(r"\bvirtual\b(?P<result>[^;{(~]*?)\b(?P<name>\w+)\s*\(")
_NAME = re.compile(r"(?<=[\w>&*\s])\b[a-z]\w*$")
_TYPES_OF_ONE_WORD = {"bool", "char", "int", "long", "short", "double", "float", "unsigned", "signed"}


def read_record(folder: Path = FOLDER) -> dict[str, dict[str, Interface]]:
    """Returns the record by release of torch and by key of the interface's group; empty if the folder has none."""
    path = folder / RECORD
    record: dict[str, dict[str, Interface]] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return record


def interfaces(torch: Path, groups: Iterable[HookGroup]) -> dict[str, Interface]:
    """Returns the interfaces of the groups, by key, as the torch in this folder declares them. Omits absent ones."""
    found = {}
    for group in groups:
        if group.header:
            read = virtual_functions(_text(torch / "include" / group.header), group.class_name)
        elif group.source:
            read = methods(_text(torch / group.source), group.class_name)
        else:
            continue
        if read:
            found[group.key] = read
    return found


@dataclass(frozen=True)
class Difference:
    """A function of an interface that is new, gone or changed. A signature is empty if the function does not exist."""

    group: HookGroup
    function: str
    before: str
    after: str

    def text(self, before: str, after: str) -> str:
        """Returns one sentence; ``before`` and ``after`` are the names of the two releases of torch."""
        place = f"torch/include/{self.group.header}" if self.group.header else f"torch/{self.group.source}"
        what = f"{self.group.class_name}.{self.function} of {after} ({place})"
        if not self.before:
            return f"{what} is new since {before}: {self.after}"
        if not self.after:
            return f"{what} is gone; {before} has it: {self.before}"
        return f"{what} changed since {before}: {self.after}, where it was {self.before}"


def differences(
    groups: Iterable[HookGroup], before: Mapping[str, Interface], after: Mapping[str, Interface]
) -> Iterator[Difference]:
    """Yields the differences between the interfaces of two releases, in the order of the table."""
    for group in groups:
        old, new = before.get(group.key, {}), after.get(group.key, {})
        for name in [*new, *(name for name in old if name not in new)]:
            if old.get(name) != new.get(name):
                yield Difference(group, name, old.get(name, ""), new.get(name, ""))


def closest(record: Mapping[str, dict[str, Interface]], release: str) -> str:
    """Returns the recorded release to compare ``release`` with: itself, or the newest one if it has no record."""
    return release if release in record else list(record)[-1]


def virtual_functions(text: str, class_name: str) -> Interface:
    """Returns the virtual functions that a class in the text of a header declares, without destructors."""
    text = _ATTRIBUTE.sub("", _COMMENT.sub("", text))
    start = re.search(rf"\b(?:struct|class)\s+(?:\w+\s+)?{class_name}\b[^;{{(]*\{{", text)
    if start is None:
        return {}
    body = text[start.end() : _closing(text, start.end(), "{}")]
    found: dict[str, list[str]] = {}
    for match in _VIRTUAL.finditer(body):
        end = _closing(body, match.end(), "()")
        parameters = ", ".join(_without_name(item) for item in _split(body[match.end() : end - 1]))
        rest = re.match(r"\s*((?:const|noexcept)\b\s*)*", body[end:])
        qualifiers = rest.group().split() if rest else []
        signature = " ".join([*match["result"].split(), f"({parameters})", *qualifiers])
        found.setdefault(match["name"], []).append(signature)
    return {name: "; ".join(sorted(signatures)) for name, signatures in found.items()}


def methods(text: str, class_name: str) -> Interface:
    """Returns the methods of a class in the text of a module, and of the classes in it, without special methods."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            return dict(_methods(node, ""))
    return {}


def _methods(node: ast.ClassDef, prefix: str) -> Iterator[tuple[str, str]]:
    for item in node.body:
        if isinstance(item, ast.ClassDef):
            yield prefix + item.name, "class"
            yield from _methods(item, f"{prefix}{item.name}.")
        elif isinstance(item, ast.FunctionDef) and not item.name.startswith("__"):
            names = [argument.arg for argument in (*item.args.posonlyargs, *item.args.args, *item.args.kwonlyargs)]
            yield prefix + item.name, f"({', '.join(name for name in names if name not in {'self', 'cls'})})"


def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.is_file() else ""


def _closing(text: str, start: int, pair: str) -> int:
    """Returns the position after the bracket that closes the one open at ``start``."""
    depth, place = 1, start
    while depth and place < len(text):
        depth += {pair[0]: 1, pair[1]: -1}.get(text[place], 0)
        place += 1
    return place


def _split(parameters: str) -> Iterator[str]:
    """Yields the parameters of a list, which is split at commas outside brackets."""
    depth, item = 0, ""
    for character in parameters:
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            yield item
            item = ""
        else:
            item += character
    if item.strip():
        yield item


def _without_name(parameter: str) -> str:
    """Returns the type of a parameter, without its name and default."""
    words = " ".join(parameter.partition("=")[0].split())
    match = _NAME.search(words)
    if match and match.group() not in _TYPES_OF_ONE_WORD and words[: match.start()].strip() not in {"", "const"}:
        words = words[: match.start()]
    return words.strip()
