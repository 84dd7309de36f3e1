# SPDX-License-Identifier: BSD-3-Clause
"""Reads from PyTorch's dispatcher which kernels implement operators."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import torch

from .request import CannotCheck

# Matches the source file that registered the kernel for PrivateUse1, in a dump of the dispatcher.
_SITE = re.compile(r"^PrivateUse1: (?:fallthrough )?registered at (\S+?)[:\s]", re.MULTILINE)
PYTORCH = "PyTorch"  # the library of kernels that PyTorch registers for every backend, such as those of c10d
_KEYS = ("PrivateUse1", "AutogradPrivateUse1", "AutocastPrivateUse1")


def count() -> dict[str, Any]:
    """Returns the numbers of operators with kernels for the backend's dispatch keys, and the keys with a fallback.

    Also returns the number of kernels for PrivateUse1 from each library.
    """
    names = torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1")
    libraries = Counter(_library(torch._C._dispatch_dump(name)) for name in names)
    return {
        "operators": {key: len(torch._C._dispatch_get_registrations_for_dispatch_key(key)) for key in _KEYS},
        "libraries": dict(libraries),
        "fallbacks": {
            key: torch._C._dispatch_has_backend_fallback(getattr(torch._C.DispatchKey, key)) for key in _KEYS
        },
    }


def _library(dump: str) -> str:
    """Returns the library that registered the PrivateUse1 kernel, as far as the path of its source file shows it."""
    found = _SITE.search(dump)
    if found is None:
        return "unknown"
    path = found.group(1).rpartition("site-packages/")[2]
    if re.search(r"/(aten|c10|torch)/", path):
        return PYTORCH  # a path on the machine that built PyTorch
    return path.split("/")[0] if not path.startswith("/") else path


def resolve(name: str) -> str:
    """Returns the full name of the operator that a name refers to. Raises CannotCheck for none or several."""
    full, _ = choose(name, torch._C._dispatch_get_all_op_names())
    if not full:
        raise CannotCheck(f"{name!r} refers to no operator, or to several")
    return full


def explain(name: str) -> dict[str, Any]:
    """Returns the dispatcher's tables for an operator, or ``candidates`` if the name refers to none or several."""
    known = torch._C._dispatch_get_all_op_names()
    full, overloads = choose(name, known)
    if not full:
        return {"candidates": overloads, "known": known if not overloads else []}
    dump, table = torch._C._dispatch_dump(full), torch._C._dispatch_dump_table(full)
    return {
        "name": full,
        "schema": _line_after("schema: ", dump),
        "registered": _line_after("debug: ", dump),
        "registrations": dict(_entries(dump)),
        "table": dict(_entries(table)),
        "others": {other: dict(_entries(torch._C._dispatch_dump_table(other))) for other in overloads},
    }


def _line_after(start: str, text: str) -> str:
    return next((line.removeprefix(start) for line in text.splitlines() if line.startswith(start)), "")


def _entries(text: str) -> list[tuple[str, str]]:
    """Returns (dispatch key, registration) for the lines of a dump that have a kernel."""
    lines = (line.partition(": ") for line in text.splitlines())
    return [(key, value) for key, _, value in lines if value.startswith(("registered", "fallthrough"))]


def choose(name: str, known: list[str]) -> tuple[str, list[str]]:
    """Returns the operator that a name refers to, empty if it refers to none or several, and the other overloads.

    Accepted spellings are ``aten::add.Tensor``, ``aten.add.Tensor``, ``torch.ops.aten.add.Tensor``, ``add.Tensor``,
    ``torch.add`` and, as the overload of the empty name is written, ``aten::relu.default``. Of several overloads the
    one without a name is chosen, or else ``Tensor`` or ``self``.
    """
    name = re.sub(r"^torch\.ops\.(\w+)\.", r"\1::", name.strip())
    name = re.sub(r"^torch\.(nn\.functional\.|Tensor\.|special\.|linalg\.)?", "aten::", name)
    head, dot, rest = name.partition(".")
    if "::" not in name:
        namespaces = {item.partition("::")[0] for item in known}
        name = f"{head}::{rest}" if dot and head in namespaces else f"aten::{name}"
    name = name.removesuffix(".default")
    overloads = sorted(item for item in known if item == name or item.startswith(f"{name}."))
    for candidate in (name, f"{name}.Tensor", f"{name}.self", *overloads[:1] * (len(overloads) == 1)):
        if candidate in overloads:
            return candidate, [item for item in overloads if item != candidate]
    return "", overloads
