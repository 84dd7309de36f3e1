# SPDX-License-Identifier: BSD-3-Clause
"""Finds the package that provides a name of ``torch.openreg``, a feature such as autocast, or a setting.

A package declares its names and features by entry points in its ``pyproject.toml``, and its settings, which are
environment variables, in its ``doctor.toml``. ``_providers.json`` is generated from the declarations of this project's
packages, so that a message can name a package that is not installed. Its table ``packages`` is for the doctor. So no
message of the runtime contains a fixed package name.
"""

from __future__ import annotations

import functools
import json
import sys
from importlib.metadata import entry_points
from pathlib import Path

from openreg_runtime._plugins import distribution_of_point, is_importable

# The group of entry points `name of torch.openreg = "module:attribute"`.
NAMES = "openreg.names"
# The group of entry points `name of a feature = "module"`.
FEATURES = "openreg.features"

_TABLE: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("_providers.json").read_text("utf-8"))


def of_feature(feature: str) -> str:
    """Returns the distribution that provides a feature."""
    return _TABLE["features"][feature]


def of_name(name: str) -> str | None:
    """Returns the package of this project that provides a name of ``torch.openreg``, installed or not, or None."""
    return _TABLE["names"].get(name)


def of_installed(name: str) -> tuple[str, str] | None:
    """Returns distribution and module of the installed package, of any project, that provides a name, or None."""
    return _installed_names(tuple(sys.path)).get(name)


def settings() -> dict[str, str]:
    """Returns the settings of all packages of this project, each with its distribution, installed or not."""
    return _TABLE["settings"]


def is_provided(feature: str) -> bool:
    """Returns True if an installed package provides a feature. Does not import it.

    For a missing feature, the runtime may register a substitute with PyTorch, which only reports the missing package.
    PyTorch accepts one registration, so the runtime must not register the substitute if a package provides the feature.
    """
    points = entry_points(group=FEATURES)
    return any(point.name == feature and is_importable(point.value) for point in points)


def missing(what: str, distribution: str) -> str:
    """Returns the message about `what`, which is missing and which a distribution provides."""
    return (
        f"{what} comes with the package {distribution}, which is not installed or not imported. "
        f"Install it with: pip install {distribution}"
    )


def missing_name(name: str) -> AttributeError:
    """Returns the error for a name that ``torch.openreg`` does not have."""
    if (provider := of_name(name)) is not None:
        return AttributeError(missing(f"torch.openreg.{name}", provider))
    if (found := of_installed(name)) is not None:
        distribution, module = found
        return AttributeError(
            f"torch.openreg.{name} comes with the package {distribution}, which is installed and not imported. "
            f"Import it with: import {module}"
        )
    return AttributeError(f"module 'torch.openreg' has no attribute {name!r}")


@functools.lru_cache(maxsize=1)
def _installed_names(_path: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    # Cached, because PyTorch calls hasattr() often and reading all metadata takes milliseconds.
    points = entry_points(group=NAMES)
    return {point.name: (distribution_of_point(point), point.value.partition(":")[0]) for point in points}
