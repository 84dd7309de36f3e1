# SPDX-License-Identifier: BSD-3-Clause
"""Whether the installed PyTorch asks what the record of its release says: what is new, gone or changed.

A release that is not recorded, such as a nightly build, is compared with the newest one that is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .. import declarations, installed
from ..examination import Examination
from ..finding import Finding

TITLE = "Interfaces of PyTorch"
POSITION = 85

# The doctor's own repository has it.
_RECORDED = "packages/openreg-doctor/tools/interfaces.py"


def check(examination: Examination) -> Iterator[Finding]:
    """One finding for each function that differs; one for all, where none does."""
    if examination.order.operator:
        return
    torch = installed.all_distributions().get("torch")
    record = declarations.read_record()
    if not torch or not record:
        return
    version = torch[0].version
    found = declarations.interfaces(Path(str(torch[0].locate_file("torch"))), examination.groups)
    if not found:
        yield Finding(
            "pytorch",
            "unseen",
            f"torch {version} is installed without its headers",
            "nothing tells whether it asks what openreg answers",
            "install a torch with headers, as its wheels have them, and run the doctor again",
        )
        return
    release = declarations.closest(record, ".".join(version.split(".")[:2]))
    differences = list(declarations.differences(examination.groups, record[release], found))
    for item in differences:
        yield Finding(
            f"pytorch.{item.group.key}.{item.function}",
            "warning",
            item.text(f"torch {release}", f"torch {version}"),
            _cost(item),
            f"answer it, and record the release: {_RECORDED}",
        )
    if not differences:
        count = sum(len(functions) for functions in found.values())
        yield Finding("pytorch", "ok", f"torch {version} declares the {count} functions that torch {release} asks for")


def _cost(item: declarations.Difference) -> str:
    if not item.before:
        return "nobody here answers it; PyTorch's own answer, if it has one, counts"
    if not item.after:
        return "nothing calls what overrides it"
    return "what overrides it is no longer called, or does not compile"
