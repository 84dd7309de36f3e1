# SPDX-License-Identifier: BSD-3-Clause
"""Checks the native parts of the installed packages, their compiled libraries and modules, for openreg-doctor.

An entry point of the group ``openreg_doctor.checks`` names the function of this file. The doctor loads the file without
the package, because the import of the package starts the device. So this file imports ``_plugins`` relatively, and that
file imports neither torch nor other files of the package.
"""

from __future__ import annotations

from collections.abc import Iterator

from openreg_doctor.examination import Examination
from openreg_doctor.finding import Finding, Section

from ._plugins import GROUP, installed_plugins

_POSITION = 30  # of the section in the doctor's report, after that about packages


def native_parts(examination: Examination) -> Section:
    """Returns findings about the ABI number and the torch version of each package's native parts.

    Both are read from ``_build.json``, the record that the build of a package writes into it. The section is empty for
    another device.
    """
    backend = examination.backend
    ours = backend is not None and backend.device_package.backend_table.get("plugins") == GROUP
    return Section("Native parts", tuple(_findings()) if ours else (), _POSITION)


def _findings() -> Iterator[Finding]:
    for plugin in installed_plugins():
        name = f"abi.{plugin.distribution}"
        if plugin.problem is not None:
            what, _, fix = plugin.problem.partition(". ")
            yield Finding(name, "problem", what, f"{plugin.module} refuses to load, or would crash", fix)
        elif plugin.abi_version is None:
            yield Finding(name, "ok", f"{plugin.module} has no native parts")
        else:
            built_for = f"ABI {plugin.abi_version} of openreg-runtime and torch {plugin.torch_version}"
            yield Finding(name, "ok", f"{plugin.module} was compiled for {built_for}")
