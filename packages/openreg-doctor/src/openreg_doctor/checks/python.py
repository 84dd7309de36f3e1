# SPDX-License-Identifier: BSD-3-Clause
"""Checks Python, its platform and torch."""

from __future__ import annotations

import platform
import sys
import sysconfig
from collections.abc import Iterator

from .. import installed
from ..children import START_STEP
from ..examination import AUTOLOAD_SWITCH, Examination
from ..finding import Finding

TITLE = "Environment"
POSITION = 10

_OLDEST = (3, 10)


def check(examination: Examination) -> Iterator[Finding]:
    """Yields findings about the versions, and about ``import torch`` with nothing else loaded."""
    version = platform.python_version()
    what = f"Python {version} at {sys.executable}, {sysconfig.get_platform()}"
    if sys.version_info >= _OLDEST:
        yield Finding("environment.python", "ok", what)
    else:
        yield Finding("environment.python", "problem", what, "the packages need Python 3.10", "install a newer Python")
    yield _torch(examination)


def _torch_requirement(examination: Examination) -> str:
    """Returns the device package's requirement on torch; "torch" if no package declares the device."""
    return installed.required(examination.backend.root.distribution, "torch") if examination.backend else "torch"


def _torch(examination: Examination) -> Finding:
    name = "environment.torch"
    if failure := examination.started.failure(START_STEP, "import torch"):
        return Finding(
            name,
            "problem",
            f"`{failure.name}` fails: {failure.text}",
            "nothing else works",
            f"pip install --force-reinstall '{_torch_requirement(examination)}', or remove what the error names; "
            f"set {AUTOLOAD_SWITCH}=0 to import torch without the backends that load with it",
        )
    found = examination.started.value("import torch")
    if not found:
        return Finding(name, "unseen", "torch was not imported", "its version is unknown", "resolve the problems below")
    recorded = installed.all_distributions().get("torch")
    if recorded and recorded[0].version.partition("+")[0] != found["version"].partition("+")[0]:
        return Finding(
            name,
            "problem",
            f"torch {found['version']} is imported from {found['file']}, but pip lists torch {recorded[0].version}",
            "pip checks requirements against another torch than the one that is imported",
            "remove the copy that pip does not list (see PYTHONPATH), or pip install --force-reinstall torch",
        )
    return Finding(name, "ok", f"torch {found['version']} at {found['file']}")
