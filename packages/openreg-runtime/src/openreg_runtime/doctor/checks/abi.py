# SPDX-License-Identifier: BSD-3-Clause
"""What the native parts of the installed packages were compiled for, read from their build records."""

from __future__ import annotations

from collections.abc import Iterator

from openreg_runtime._plugins import installed_plugins

from ..examination import Examination
from ..finding import Finding

TITLE = "Native parts"
POSITION = 30


def check(examination: Examination) -> Iterator[Finding]:
    """The ABI number and torch of each plug-in of openreg; other backends have no such record."""
    if not examination.order.own:
        return
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
