# SPDX-License-Identifier: BSD-3-Clause
"""Reads a manifest, the file of a backend's expected failures, in the format of torch-spyre (IBM's backend).

The format is YAML with `test_suite_config`, which lists tests and supported operators:

    test_suite_config:
      files:
        - path: ${TORCH_ROOT}/test/test_binary_ufuncs.py
          unlisted_test_mode: skip           # skip, xfail, xfail_strict or mandatory_success
          tests:
            - names: [TestBinaryUfuncs::test_scalar_support]
              mode: mandatory_success
      global:
        supported_dtypes: [{name: float16}]
        supported_ops:
          - name: add
            dtypes: [{name: float16, precision: {atol: 1e-3, rtol: 1e-3}}]

If supported operators are listed, others are not run, and an operator includes all its variants. A test with mode
xfail may pass; one with xfail_strict may not. An operator with `force_xfail` is expected to fail. A dtype with it is
not run, unless the operator lists the dtype itself without it. If that leaves an operator no dtype, it is expected to
fail. The kit ignores devices, modules, descriptions, labels, tags, seeds, selectors and edits, which are for
torch-spyre's own runner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .manifest import Exclusion, Manifest, ManifestError, OperatorExpectations, known_dtype, text_of

_MODES = ("mandatory_success", "skip", "xfail", "xfail_strict")
_ACCEPTED = {
    "the file": ("test_suite_config",),
    "test_suite_config": ("labels", "files", "global"),
    "global": ("devices", "supported_dtypes", "supported_modules", "supported_ops"),
    "supported_dtypes": ("name", "precision", "force_xfail"),
    "supported_ops": ("name", "dtypes", "force_xfail", "description", "tags"),
    "dtypes": ("name", "precision", "force_xfail"),
    "precision": ("atol", "rtol"),
    "files": ("path", "unlisted_test_mode", "tests"),
    "tests": ("names", "mode", "tags", "seed", "edits", "selectors"),
}


def read(path: Path) -> Manifest:
    """Reads a file and returns its manifest.

    Raises ManifestError if the file cannot be read or is invalid, or if PyYAML is missing.
    """
    text = text_of(path)
    try:
        import yaml
    except ImportError as error:
        raise ManifestError(
            f"{path}: the file is YAML, and PyYAML is not installed; "
            'install it with: pip install "openreg-testing[yaml]"'
        ) from error
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ManifestError(f"{path}: the file is not YAML: {error}") from error
    return _Reader(str(path)).manifest(data)


class _Reader:
    """The reader of one file. Its methods return checked values, and raise ManifestError for invalid ones."""

    def __init__(self, path: str) -> None:
        self.path = path

    def manifest(self, data: Any) -> Manifest:
        suite = self.table(self.table(data, "the file").get("test_suite_config"), "test_suite_config")
        supported = self.table(suite.get("global") or {}, "global")
        everywhere = self.rows(supported.get("supported_dtypes"), "supported_dtypes")
        operators = {
            self.name(row, "supported_ops"): self.operator(row, everywhere)
            for row in self.rows(supported.get("supported_ops"), "supported_ops")
        }
        return Manifest(
            path=self.path,
            only_listed=bool(operators),
            variants=True,
            operators=operators or ({"*": self.operator({}, everywhere)} if everywhere else {}),
            pytorch=self.tests(suite.get("files")),
        )

    def error(self, where: str, what: str) -> ManifestError:
        return ManifestError(f"{self.path}: {where} {what}")

    def table(self, value: Any, where: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self.error(where, f"is {value!r}; it has to be a table")
        for key in value:
            if key not in _ACCEPTED[where]:
                raise self.error(where, f"has an unknown key {key!r}; accepted are {', '.join(_ACCEPTED[where])}")
        return value

    def rows(self, value: Any, where: str) -> Sequence[Mapping[str, Any]]:
        if value is not None and not isinstance(value, list):
            raise self.error(where, f"is {value!r}; it has to be a list")
        return [self.table(row, where) for row in value or []]

    def name(self, row: Mapping[str, Any], where: str) -> str:
        if not isinstance(row.get("name"), str):
            raise self.error(where, f"has an entry without a name: {dict(row)!r}")
        return str(row["name"])

    def operator(self, row: Mapping[str, Any], everywhere: Sequence[Mapping[str, Any]]) -> OperatorExpectations:
        own = self.rows(row.get("dtypes"), "dtypes") or everywhere
        tolerances = {}
        for item in (*everywhere, *own):
            if item.get("precision") is not None:
                precision = self.table(item["precision"], "precision")
                tolerances[self.dtype(item)] = (self.number(precision, "rtol"), self.number(precision, "atol"))
        run = [item for item in own if not item.get("force_xfail")]
        fails = f"force_xfail in {self.path}" if row.get("force_xfail") or (own and not run) else ""
        dtypes = tuple(self.dtype(item) for item in run or own)
        return OperatorExpectations(fails=fails, dtypes=dtypes, tolerances=tolerances)

    def dtype(self, row: Mapping[str, Any]) -> str:
        name = self.name(row, "dtypes")
        if not known_dtype(name):
            raise self.error("dtypes", f"names an unknown dtype {name!r}")
        return name

    def number(self, precision: Mapping[str, Any], key: str) -> float:
        try:
            return float(precision.get(key, 0))  # YAML parses 1e-3 as a string
        except (TypeError, ValueError) as error:
            raise self.error("precision", f"{key} = {precision[key]!r} has to be a number") from error

    def tests(self, files: Any) -> Mapping[str, Exclusion]:
        """Returns the exclusions of the named tests, followed by a pattern for the unlisted tests of each file."""
        named: dict[str, Exclusion] = {}
        rest: dict[str, Exclusion] = {}
        for file in self.rows(files, "files"):
            stem = _stem(str(file.get("path", "")))
            for entry in self.rows(file.get("tests"), "tests"):
                names = entry.get("names")
                if not isinstance(names, list) or not all(isinstance(name, str) and "::" in name for name in names):
                    raise self.error("tests", f"names = {names!r} has to be a list of Class::test")
                known = self.mode(entry.get("mode", "mandatory_success"), "mode")
                for name in names:
                    test_class, _, method = name.partition("::")
                    named[f"{stem}::{test_class}*::{method}*"] = known
            others = self.mode(file.get("unlisted_test_mode", "skip"), "unlisted_test_mode")
            if others != Exclusion():
                rest[f"{stem}::*"] = others
        return {**named, **rest}

    def mode(self, value: Any, key: str) -> Exclusion:
        """Returns the exclusion that a mode means."""
        if value not in _MODES:
            raise self.error(key, f"= {value!r} is unknown; accepted are {', '.join(_MODES)}")
        reason = f"{key}: {value} in {self.path}"
        if value == "skip":
            return Exclusion(skip=reason)
        if value == "mandatory_success":
            return Exclusion()
        return Exclusion(fails=reason, strict=value == "xfail_strict")


def _stem(path: str) -> str:
    """Returns the name by which the kit calls a test file: its path below PyTorch's folder test, without ".py"."""
    _, root, below = path.rpartition("${TORCH_ROOT}/test/")
    return (below if root else path.rpartition("/")[2]).removesuffix(".py")
