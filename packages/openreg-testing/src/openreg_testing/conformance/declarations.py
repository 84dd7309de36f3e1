# SPDX-License-Identifier: BSD-3-Clause
"""The manifest as declarations to PyTorch's test framework: attributes of ``PrivateUse1TestBase``.

PyTorch instantiates its tests for a backend through this class, in ``torch.testing._internal.common_device_type``. What
a backend's own modules have declared there stays, and the manifest adds to it:

- ``op_allowlist`` and ``op_overrides``, from the manifest's entries for operators;
- ``test_exclusions``, from those under [pytorch] that are skipped and name one class, or one method of it;
- ``bypass_device_restrictions``: whether tests that are marked for one of PyTorch's own devices run, too;
- ``_capabilities()``, which ``requires_capabilities()`` asks (torch 2.15 and later).

``hw_classification`` of test classes (torch 2.15 and later) is read by ``selects()``.
"""

from __future__ import annotations

import re
import unittest
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .manifest import Manifest, ManifestError, read

_ALL = "*"  # in test_exclusions: all tests of the class


def declare(path: str | Path) -> None:
    """Declares a manifest to PyTorch's test framework in this process, for PyTorch's own runner.

    Call it before a test file is imported, such as in the backend's module for tests. Warns about entries under
    [pytorch] that only the kit understands. Raises ManifestError if the file cannot be read or is invalid.
    """
    import torch

    manifest = read(Path(path), torch.__version__)
    excluded, others = exclusions_in_pytorchs_form(manifest)
    if others:
        warnings.warn(
            f"{path}: PyTorch's test_exclusions name classes and methods, so these entries under [pytorch] hold for "
            f"python -m openreg_testing conformance alone: {', '.join(others)}. Name the class and the method in full, "
            "as test_view_ops::TestViewOps*::test_view_copy*",
            UserWarning,
            stacklevel=2,
        )
    apply(manifest, excluded)


def apply(manifest: Manifest, exclusions: Mapping[str, Any] | None = None) -> None:
    """Adds a manifest, and test exclusions in PyTorch's form, to what the backend has declared.

    Without exclusions those of the manifest are left to the kit, which reports them with their reasons.
    """
    from torch.testing._internal import common_device_type

    base: Any = common_device_type.PrivateUse1TestBase
    allowed, overrides = _operators(manifest)
    own_allowed, own_overrides = base.op_allowlist, base.op_overrides or {}
    if allowed is not None and own_allowed is not None:
        allowed = [name for name in allowed if name in own_allowed]
    merged = {name: [*own_overrides.get(name, ()), *overrides.get(name, ())] for name in {**own_overrides, **overrides}}
    base.set_test_configs(
        op_allowlist=own_allowed if allowed is None else allowed,
        op_overrides=merged or None,
        test_exclusions=_joined(base.test_exclusions or {}, exclusions or {}) or None,
    )
    if manifest.bypass_device_restrictions is not None:
        base.bypass_device_restrictions = manifest.bypass_device_restrictions
    if manifest.capabilities and hasattr(base, "_capabilities"):
        base._capabilities = classmethod(_with_capabilities(base._capabilities, manifest.capabilities))


def selects(manifest: Manifest, test_class: type) -> bool:
    """Returns True if the manifest's hardware classifications include that of a test class, or if it lists none.

    As with PyTorch's ``--hw-classification``, a class without a classification is then left out. Before torch 2.15
    no class has one, and all are run. Raises ManifestError for a name that PyTorch does not know.
    """
    from torch.testing._internal import common_utils

    known: Any = getattr(common_utils, "HardwareClassification", None)
    if known is None or not manifest.hw_classification:
        return True
    names = [item.name for item in known]
    for name in manifest.hw_classification:
        if name not in names:
            raise ManifestError(
                f"{manifest.path}: hw_classification names an unknown class {name!r}; accepted are {', '.join(names)}"
            )
    own = getattr(test_class, "hw_classification", None)
    return own is not None and own.name in manifest.hw_classification


def exclusions_in_pytorchs_form(manifest: Manifest) -> tuple[dict[str, Any], list[str]]:
    """Returns the skipped entries under [pytorch] in PyTorch's form, and the names of those that it cannot express.

    PyTorch's form has the names of classes and methods before they are instantiated. A star at the end of a name in
    the manifest stands for what the instantiation appends, the device and the dtype. A name without a star is one of
    an instantiated test, which PyTorch's form cannot have.
    """
    found: dict[str, Any] = {}
    others: list[str] = []
    for name, known in manifest.pytorch.items():
        _, _, test = name.partition("::")
        class_name, _, method = test.partition("::")
        if not known.skip:
            continue
        if re.fullmatch(r"\w+\*", class_name) and re.fullmatch(r"\w*\*", method):
            found = _joined(found, {class_name[:-1]: _ALL if method == _ALL else [method[:-1]]})
        else:
            others.append(name)
    return found, others


def _joined(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Returns two tables of test exclusions as one. Each value is "*", a list of methods, or a table by method."""
    joined = dict(first)
    for name, value in second.items():
        own = joined.get(name)
        if own is None or _ALL in (own, value):
            joined[name] = value if own is None else _ALL
        elif isinstance(own, Mapping) or isinstance(value, Mapping):
            joined[name] = {**_by_method(own), **_by_method(value)}
        else:
            joined[name] = list(dict.fromkeys([*own, *value]))
    return joined


def _by_method(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else dict.fromkeys(value, _ALL)


def _with_capabilities(
    own: Callable[[], Mapping[str, Any]], declared: Mapping[str, bool]
) -> Callable[[type], dict[str, Any]]:
    """Returns a function for ``_capabilities()``: the backend's own capabilities, replaced by those of the manifest."""

    def capabilities(_base: type) -> dict[str, Any]:
        return {**own(), **{name: lambda value=value: value for name, value in declared.items()}}

    return capabilities


def _operators(manifest: Manifest) -> tuple[list[str] | None, dict[str, list[Any]]]:
    """Returns the operators that are run, or None for all, and what changes their tests, by OpInfo.full_name."""
    import torch
    from torch.testing._internal import common_device_type
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.opinfo import core

    decorate: Any = core.DecorateInfo
    override: Any = common_device_type.toleranceOverride
    tol = common_device_type.tol
    overrides: dict[str, list[Any]] = {}
    allowed: list[str] = []
    every = {dtype for dtype in vars(torch).values() if isinstance(dtype, torch.dtype)}
    for name in dict.fromkeys(op.full_name for op in op_db):
        known, changed = manifest.operator(name), []
        if manifest.runs(name):
            allowed.append(name)
        if known.tolerances:
            granted = {getattr(torch, dtype): tol(atol, rtol) for dtype, (rtol, atol) in known.tolerances.items()}
            changed.append(decorate(override(granted)))
        if known.dtypes:
            others = [dtype for dtype in every if str(dtype).removeprefix("torch.") not in known.dtypes]
            reason = f"the manifest runs {name} in {', '.join(known.dtypes)} only"
            changed.append(decorate(unittest.skip(reason), dtypes=others))
        if known.fails:
            changed.append(decorate(unittest.skip(known.fails)))
        if changed:
            overrides[name] = changed
    restricted = manifest.only_listed or any(known.skip for known in manifest.operators.values())
    return (allowed if restricted else None), overrides
