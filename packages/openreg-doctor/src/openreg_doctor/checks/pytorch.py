# SPDX-License-Identifier: BSD-3-Clause
"""Compares the interfaces of the installed PyTorch with the record of its release: what is new, gone or changed.

An interface is a C++ or Python class whose functions a backend overrides. The record is interfaces.json. A release
without a record, such as a nightly build, is compared with the newest recorded one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .. import declarations, installed
from ..examination import Examination
from ..finding import Finding

TITLE = "Interfaces of PyTorch"
POSITION = 85

# The tool that records a release, in the doctor's repository.
_RECORD_TOOL = "packages/openreg-doctor/tools/interfaces.py"


def check(examination: Examination) -> Iterator[Finding]:
    """Yields a finding for each function that differs, or one finding if none does."""
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
            "its interfaces cannot be compared with the record",
            "install a torch with headers, as in its wheels, and run the doctor again",
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
            f"adapt the backend to it, and record the release: {_RECORD_TOOL}",
        )
    if not differences:
        count = sum(len(functions) for functions in found.values())
        yield Finding("pytorch", "ok", f"torch {version} declares the {count} recorded functions of torch {release}")


def _cost(item: declarations.Difference) -> str:
    if not item.before:
        return "no backend for the recorded release implements it; PyTorch's default applies, if there is one"
    if not item.after:
        return "PyTorch does not call what overrides it"
    return "what overrides it is no longer called, or does not compile"
