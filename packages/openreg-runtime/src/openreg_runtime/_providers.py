# SPDX-License-Identifier: BSD-3-Clause
"""Which package brings what: names of ``torch.openreg``, and features such as autocast.

A package declares it once, by entry points in its ``pyproject.toml``. What the packages of a release declare stands in
``_providers.json``, which is written from them, so that a message can name a package that is not installed; what it
says of ``packages`` is for the doctor. No other file here knows any of them by name.
"""

from __future__ import annotations

import functools
import json
import sys
from importlib.metadata import entry_points
from pathlib import Path

from openreg_runtime._plugins import distribution_of_point, is_importable

# name of torch.openreg = "module:attribute"
NAMES = "openreg.names"
# name of a feature = "module"
FEATURES = "openreg.features"

_TABLE: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("_providers.json").read_text("utf-8"))


def of_feature(feature: str) -> str:
    """The distribution that brings a feature."""
    return _TABLE["features"][feature]


def of_name(name: str) -> str | None:
    """The distribution that brings a name of ``torch.openreg``, installed or not; None for a name that none brings."""
    return _TABLE["names"].get(name)


def of_installed(name: str) -> tuple[str, str] | None:
    """The distribution and the module of an installed package, known to us or not, that brings a name."""
    return _installed_names(tuple(sys.path)).get(name)


def is_brought(feature: str) -> bool:
    """Whether an installed package brings a feature; it is not imported.

    The runtime stands in for some features with a message, in registries of PyTorch that take one owner. Where a
    package brings the feature it does not, so that the registry is free for that package.
    """
    points = entry_points(group=FEATURES)
    return any(point.name == feature and is_importable(point.value) for point in points)


def missing(what: str, distribution: str) -> str:
    """The message about something that is absent and that a distribution brings."""
    return (
        f"{what} comes with the package {distribution}, which is not installed or not imported. "
        f"Install it with: pip install {distribution}"
    )


@functools.lru_cache(maxsize=1)
def _installed_names(_path: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    # PyTorch looks up names with hasattr() again and again, and reading all metadata takes milliseconds.
    points = entry_points(group=NAMES)
    return {point.name: (distribution_of_point(point), point.value.partition(":")[0]) for point in points}
