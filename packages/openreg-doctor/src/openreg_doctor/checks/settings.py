# SPDX-License-Identifier: BSD-3-Clause
"""Checks the environment variables of the device's packages: their values, and which are rejected or unknown.

The packages declare their variables in their files doctor.toml.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from ..backend import DeclaredBackend
from ..examination import Examination
from ..finding import Finding

TITLE = "Settings"
POSITION = 50


def check(examination: Examination) -> Iterator[Finding]:
    """Yields a finding for each variable that an installed package declares, with its value or default.

    Also yields one for each other variable with the prefix of the backend's settings.
    """
    backend = examination.backend
    if backend is None:
        return
    declared = {setting.name: setting for setting in backend.settings}
    for name, setting in declared.items():
        value = os.environ.get(name)
        if name in examination.refused:
            yield _refused(name, examination)
        elif value is None:
            yield Finding(f"settings.{name}", "ok", f"{name} is not set: {setting.default}")
        elif setting.restricts and value != setting.default:
            fix = f"unset {name} if that is not intended"
            yield Finding(f"settings.{name}", "note", f"{name}={value}", setting.restricts, fix)
        else:
            yield Finding(f"settings.{name}", "ok", f"{name}={value}")
    # The beginning of the names of variables for the backend's own tests, which no package declares.
    of_tests = backend.device_package.backend_table.get("settings_of_tests", "")
    for name in sorted(os.environ):
        foreign = not backend.prefix or not name.startswith(backend.prefix) or (of_tests and name.startswith(of_tests))
        if name not in declared and not foreign:
            yield _unknown(name, examination, backend, declared)


def _refused(name: str, examination: Examination) -> Finding:
    return Finding(
        f"settings.{name}",
        "problem",
        f"{name}={os.environ.get(name, '')!r} is rejected: {examination.refused[name]}",
        "the device cannot be used",
        f"set an accepted value, or unset {name}",
    )


def _unknown(name: str, examination: Examination, backend: DeclaredBackend, declared: Iterable[str]) -> Finding:
    if name in examination.refused:  # a setting of a plug-in that declares nothing
        return _refused(name, examination)
    for package in backend.packages:
        if not package.installed and any(setting.name == name for setting in package.settings):
            what = f"{name} is a setting of {package.distribution}, which is not installed"
            fix = f"pip install {package.distribution}, or unset {name}"
            return Finding(f"settings.{name}", "note", what, "it has no effect", fix)
    close = get_close_matches(name, declared, 1)
    return Finding(
        f"settings.{name}",
        "warning",
        f"{name} is not a setting of {backend.device}" + (f"; a similar setting is {close[0]}" if close else ""),
        "it has no effect",
        f"write {close[0]}, or unset {name}" if close else f"unset {name}",
    )
