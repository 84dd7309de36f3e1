# SPDX-License-Identifier: BSD-3-Clause
"""Finds the installed plug-ins, and checks that their native parts fit this Python, runtime and torch.

A plug-in is a module by which a package extends the openreg device; an entry point of the group ``openreg.plugins``
names it. Native parts are compiled libraries and extension modules. The build of a package with native parts writes a
build record, ``_build.json``, into the import package (``cmake/build_record.cmake``). It contains the ABI number of the
runtime's headers, which increases when these change, the version of torch, and the suffix of the modules. This file
reads these records and loads no package. It imports neither torch nor other files of this package.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.metadata import (
    Distribution,
    EntryPoint,
    PackageNotFoundError,
    distributions,
    entry_points,
    requires,
    version,
)
from pathlib import Path
from typing import NamedTuple

# A plug-in is an entry point of this group. Its value is the module to import.
GROUP = "openreg.plugins"

RUNTIME = "openreg_runtime"
RECORD = "_build.json"


class Plugin(NamedTuple):
    """An installed plug-in, with the ABI and the torch version for which its native parts were compiled."""

    module: str  # the module to import, such as "vendor_kernels"
    distribution: str  # the name that pip installs, such as "vendor-kernels"
    version: str  # of the distribution
    abi_version: int | None  # of the headers of openreg-runtime; None without native parts
    torch_version: str | None  # None without native parts
    problem: str | None  # the reason why it cannot be loaded here, and the remedy; None if it can


class Build(NamedTuple):
    """The content of a build record."""

    abi_version: int
    torch_version: str
    extension_suffix: str  # of its modules, such as .cpython-311-x86_64-linux-gnu.so; empty if the file names none


class _DamagedError(Exception):
    """An error for an incomplete installation; its text completes a sentence that begins with the package."""


def installed_plugins() -> list[Plugin]:
    """Returns every installed plug-in, sorted by the name of its distribution. Imports none of them."""
    found = [_describe(point) for point in entry_points(group=GROUP)]
    return sorted(found, key=lambda plugin: (plugin.distribution, plugin.module))


def is_importable(module: str) -> bool:
    """Returns True if the package that contains the module is installed. Does not import it."""
    return _spec(_package(module)) is not None


def distribution_of_point(point: EntryPoint) -> str:
    """Returns the distribution that declares an entry point, or the entry point's name if the metadata is damaged."""
    return _name_and_version(point.dist, point.name)[0]


def is_module_name(value: str) -> bool:
    """Returns True if an entry point's value is a module without attribute or extras, as the group requires."""
    return re.fullmatch(r"\w+(\.\w+)*", value) is not None


def no_module_name(value: str, distribution: str) -> str:
    """Returns the message about an entry point whose value is not the name of a module."""
    return (
        f"the openreg plug-in {value!r} of the package {distribution} is not the name of a module. The value of an "
        f"entry point of the group {GROUP} is a module, which is imported; nothing is called. Correct it in the "
        f"package, or go on without it: pip uninstall {distribution}"
    )


def require_matching_build(module: str) -> None:
    """Raises ImportError unless the native parts of a package were compiled for this Python, runtime and torch.

    A package with native parts calls this with its ``__name__`` before it imports them, because the loader would only
    report an undefined symbol. The error names both ABI numbers or both versions of torch, and the pip command that
    resolves it. A package without native parts is compared by the release of the runtime that it requires.
    """
    package = _package(module)
    _, problem = _check(package, package)
    if problem is not None:
        _, problem = _check(package, distribution_of(package))
        raise ImportError(problem)


def _describe(point: EntryPoint) -> Plugin:
    """Returns the plug-in of an entry point."""
    distribution, version_ = _name_and_version(point.dist, point.name)
    package = _package(point.value)
    build, problem = _check(package, distribution)
    if not is_module_name(point.value):
        problem = no_module_name(point.value, distribution)
    elif _spec(package) is None:
        problem = _reinstall(distribution, f"announces the module {point.value!r} and does not have it")
    abi_version, torch_version, _ = build or (None, None, None)
    return Plugin(point.value, distribution, version_, abi_version, torch_version, problem)


def _check(package: str, distribution: str) -> tuple[Build | None, str | None]:
    """Returns the build record of a package, and the problem with it; None for each that does not exist."""
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
    if build is None:
        return None, _other_release(distribution)
    return build, _mismatch(distribution, build, runtime)


def _other_release(distribution: str) -> str | None:
    """Returns the message about a package without native parts that requires another release of the runtime, or None.

    pip checks this, unless it is told not to (``--no-deps``). Other forms than ``openreg-runtime==2.13.*`` are left to
    pip.
    """
    try:
        requirements, installed = requires(distribution), version("openreg-runtime")
    except PackageNotFoundError:
        return None
    for requirement in requirements or ():
        release = re.fullmatch(r"openreg-runtime\s*\(?==\s*(\d+\.\d+)\.\*\)?", requirement)
        if release is not None and release[1] != _minor(installed):
            return (
                f"{distribution} works with openreg-runtime {release[1]}.*, but openreg-runtime {installed} is "
                f"installed. Install packages of one release: pip install --upgrade openreg-runtime {distribution}"
            )
    return None


def _mismatch(distribution: str, build: Build, runtime: Build) -> str | None:
    """Returns the message about native parts that do not fit this Python, runtime or torch, or None if they fit."""
    if build.extension_suffix and build.extension_suffix not in EXTENSION_SUFFIXES:
        return _reinstall(
            distribution,
            f"was compiled for another Python: its modules end in {build.extension_suffix}, and "
            f"{sys.executable} loads those that end in {EXTENSION_SUFFIXES[0]}",
        )
    if build.abi_version != runtime.abi_version:
        return (
            f"{distribution} was compiled for ABI {build.abi_version} of openreg-runtime, but the installed "
            f"openreg-runtime has ABI {runtime.abi_version}. Install packages of one release: "
            f"pip install --upgrade openreg-runtime {distribution}"
        )
    wanted, installed = _minor(build.torch_version), _installed_torch()
    what = f"{distribution} works with torch {wanted}.*, for which it was compiled, but torch {installed} is installed"
    if _minor(installed) == wanted:
        if not _torch_is_debug_build():
            return None
        return (
            f"{what}, a debug build (torch.version.debug), whose C++ objects have another layout. Install a release "
            f"build: pip install --force-reinstall 'torch=={wanted}.*'"
        )
    this_torch = f"'torch=={_minor(installed)}.*'"
    if _minor(installed) == _minor(runtime.torch_version):  # the runtime needs the installed torch
        return f"{what}. Install another {distribution}: pip install --upgrade {distribution} {this_torch}"
    if re.fullmatch(r"[\d.]+(\+.*)?", installed) is None:
        return f"{what}, for which no wheels are made. Install a matching torch: pip install 'torch=={wanted}.*'"
    return (
        f"{what}. Install a matching torch (pip install 'torch=={wanted}.*') or the packages for this one "
        f"(pip install --upgrade {_names_of_one_release(distribution)} {this_torch})."
    )


def _names_of_one_release(distribution: str) -> str:
    """Returns the packages that pip must replace together: for one of this project, all its installed packages."""
    if not distribution.startswith("openreg-"):
        return distribution
    names = (_name_and_version(item, "")[0].replace("_", "-") for item in distributions())
    return " ".join(sorted({distribution, *(name for name in names if name.startswith("openreg-"))}))


def _read_build(package: str) -> Build | None:
    """Returns the build record of a package, or None without native parts. Raises _DamagedError if it is unreadable."""
    spec = _spec(package)
    # An editable installation has its Python and its native parts in different folders.
    folders = (spec.submodule_search_locations or ()) if spec is not None else ()
    paths = [path for path in (Path(folder, RECORD) for folder in folders) if path.is_file()]
    if not paths:
        return None
    try:
        content = json.loads(paths[0].read_text("utf-8"))
        suffix = str(content.get("extension_suffix", ""))
        return Build(int(content["abi_version"]), str(content["torch_version"]), suffix)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise _DamagedError(f"has an unreadable {paths[0]} ({error!r})") from error


def _spec(package: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(package)
    except ValueError:  # an empty name, or a module without a specification, such as __main__
        return None


def _reinstall(distribution: str, what: str) -> str:
    command = f"pip install --force-reinstall --no-deps {distribution}"
    return f"the installed {distribution} {what}. Reinstall it: {command}"


def _package(module: str) -> str:
    # A search for a submodule would import its package.
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


def _torch_is_debug_build() -> bool:
    torch = sys.modules.get("torch")
    if torch is not None:
        return bool(getattr(getattr(torch, "version", None), "debug", False))
    spec = _spec("torch")
    file = Path(spec.origin).with_name("version.py") if spec is not None and spec.origin is not None else None
    return file is not None and file.is_file() and re.search(r"(?m)^debug = True$", file.read_text("utf-8")) is not None


def distribution_of(package: str) -> str:
    """Returns the distribution whose plug-in is this package, or else the package's name with hyphens."""
    names = [_name_and_version(item.dist, item.name)[0] for item in entry_points(group=GROUP) if item.value == package]
    return names[0] if names else package.replace("_", "-")


def _name_and_version(distribution: Distribution | None, name: str) -> tuple[str, str]:
    if distribution is None or "Name" not in distribution.metadata:
        return name, "unknown"
    return distribution.name, distribution.version
