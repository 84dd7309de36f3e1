# SPDX-License-Identifier: BSD-3-Clause
"""What the installed openreg packages were compiled for, and whether that runs here: read, never loaded.

The build of a package with native parts leaves ``_build.json`` in its import package (``cmake/build_record.cmake``).
This file imports neither torch nor its neighbours.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import NamedTuple

# A package announces itself by an entry point of this group, whose value is the module to import.
GROUP = "openreg.plugins"

RUNTIME = "openreg_runtime"
RECORD = "_build.json"


class Plugin(NamedTuple):
    """An installed package of the group ``openreg.plugins``, and what its native parts were compiled for."""

    module: str  # what is imported, such as "openreg_ops"
    distribution: str  # what pip installs, such as "openreg-ops"
    version: str  # of the distribution
    abi_version: int | None  # of the headers of openreg-runtime; None without native parts
    torch_version: str | None  # None without native parts
    problem: str | None  # why it cannot be loaded here, and the way out


class Build(NamedTuple):
    """The content of a ``_build.json``."""

    abi_version: int
    torch_version: str


class _DamagedError(Exception):
    """An installed package lacks what it should have; the text is the end of a sentence about it."""


def installed_plugins() -> list[Plugin]:
    """Every installed openreg package in the order of their distributions' names, found without importing any."""
    found = [_describe(point) for point in entry_points(group=GROUP)]
    return sorted(found, key=lambda plugin: (plugin.distribution, plugin.module))


def is_installed(package: str) -> bool:
    """Whether the package of a feature is there, by its import name; it is not imported.

    The runtime stands in for some features with a message. Where ``openreg_compile`` or ``openreg_profiler`` can be
    imported it does not, so that PyTorch's registries are free for them.
    """
    return _spec(package) is not None


def is_module_name(value: str) -> bool:
    """Whether an entry point's value is what the group asks for: a module, without attribute or extras."""
    return re.fullmatch(r"\w+(\.\w+)*", value) is not None


def require_matching_build(module: str) -> None:
    """Raises ImportError unless the native parts of a package were compiled for this runtime and the installed torch.

    A package with native parts calls this with its ``__name__`` before it imports them: the loader would only tell of
    an undefined symbol. The error names both ABI numbers or both versions of torch, and the pip command. A package
    without native parts always passes.
    """
    package = _package(module)
    _, problem = _check(package, package)
    if problem is not None:
        _, problem = _check(package, _distribution_of(package))
        raise ImportError(problem)


def _describe(point: EntryPoint) -> Plugin:
    distribution, version_ = _name_and_version(point.dist, point.name)
    package = _package(point.value)
    build, problem = _check(package, distribution)
    if not is_module_name(point.value):
        problem = (
            f"the openreg plug-in {point.value!r} of the package {distribution} is not the name of a module. The value "
            f"of an entry point of the group {GROUP} is a module, which is imported; nothing is called. Correct it in "
            f"the package, or go on without it: pip uninstall {distribution}"
        )
    elif _spec(package) is None:
        problem = _reinstall(distribution, f"announces the module {point.value!r} and does not have it")
    abi_version, torch_version = build or (None, None)
    return Plugin(point.value, distribution, version_, abi_version, torch_version, problem)


def _check(package: str, distribution: str) -> tuple[Build | None, str | None]:
    """What a package was compiled for, and why that does not run here."""
    try:
        build = _read_build(package)
    except _DamagedError as error:
        return None, _reinstall(distribution, str(error))
    try:
        runtime = _read_build(RUNTIME)
        if runtime is None:
            raise _DamagedError(f"has no {RECORD}")
    except _DamagedError as error:
        return build, _reinstall("openreg-runtime", str(error))
    return build, _mismatch(distribution, build, runtime) if build is not None else None


def _mismatch(distribution: str, build: Build, runtime: Build) -> str | None:
    if build.abi_version != runtime.abi_version:
        return (
            f"{distribution} was compiled for ABI {build.abi_version} of openreg-runtime, but the installed "
            f"openreg-runtime has ABI {runtime.abi_version}. Install packages of one release: "
            f"pip install --upgrade openreg-runtime {distribution}"
        )
    wanted, installed = _minor(build.torch_version), _installed_torch()
    if _minor(installed) == wanted:
        return None
    what = f"{distribution} works with torch {wanted}.*, for which it was compiled, but torch {installed} is installed"
    if _minor(installed) == _minor(runtime.torch_version):  # another torch would not fit the runtime
        return f"{what}. Install another {distribution}: pip install --upgrade {distribution}"
    return (
        f"{what}. Install a matching torch (pip install 'torch=={wanted}.*') or another {distribution} "
        f"(pip install --upgrade {distribution})."
    )


def _read_build(package: str) -> Build | None:
    """The record of a package; None without native parts. Raises _DamagedError."""
    spec = _spec(package)
    # An editable install has its Python and its native parts in different folders.
    folders = (spec.submodule_search_locations or ()) if spec is not None else ()
    paths = [path for path in (Path(folder, RECORD) for folder in folders) if path.is_file()]
    if not paths:
        return None
    try:
        content = json.loads(paths[0].read_text("utf-8"))
        return Build(int(content["abi_version"]), str(content["torch_version"]))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise _DamagedError(f"has an unreadable {paths[0]} ({error!r})") from error


def _spec(package: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(package)
    except ValueError:  # an empty name, or a module that nothing was found for, such as __main__
        return None


def _reinstall(distribution: str, what: str) -> str:
    command = f"pip install --force-reinstall --no-deps {distribution}"
    return f"the installed {distribution} {what}. Reinstall it: {command}"


def _package(module: str) -> str:
    # Looking for a module inside a package would import the package.
    return module.partition(".")[0]


def _minor(version_: str) -> str:
    return ".".join(version_.split(".")[:2])


def _installed_torch() -> str:
    torch = sys.modules.get("torch")
    if torch is not None:
        return str(torch.__version__)
    try:
        return version("torch")
    except PackageNotFoundError:
        return "(none)"


def _distribution_of(package: str) -> str:
    names = [_name_and_version(item.dist, item.name)[0] for item in entry_points(group=GROUP) if item.value == package]
    return names[0] if names else package.replace("_", "-")


def _name_and_version(distribution: Distribution | None, name: str) -> tuple[str, str]:
    if distribution is None or "Name" not in distribution.metadata:
        return name, "unknown"
    return distribution.name, distribution.version
