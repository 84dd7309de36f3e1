# SPDX-License-Identifier: BSD-3-Clause
"""Checks the versions of Python and torch, and that torch can be imported."""

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
    """Yields a finding about Python and its platform, and one about ``import torch`` in a child process."""
    version = platform.python_version()
    what = f"Python {version} at {sys.executable}, {sysconfig.get_platform()}"
    if sys.version_info >= _OLDEST:
        yield Finding("environment.python", "ok", what)
    else:
        yield Finding("environment.python", "problem", what, "the packages need Python 3.10", "install a newer Python")
    yield _torch(examination)


def _torch_requirement(examination: Examination) -> str:
    """Returns the requirement on torch of the package that initializes the device, such as "torch==2.13.*".

    Returns "torch" if no installed package has a doctor.toml for the device.
    """
    return (
        installed.required(examination.backend.device_package.distribution, "torch") if examination.backend else "torch"
    )


def _torch(examination: Examination) -> Finding:
    name = "environment.torch"
    if failure := examination.results.failure(START_STEP, "import torch"):
        return Finding(
            name,
            "problem",
            f"`{failure.name}` fails: {failure.text}",
            "nothing else works",
            f"pip install --force-reinstall '{_torch_requirement(examination)}', or remove what the error names; "
            f"set {AUTOLOAD_SWITCH}=0 to import torch without the backends that load with it",
        )
    found = examination.results.value("import torch")
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
