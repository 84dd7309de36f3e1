# SPDX-License-Identifier: BSD-3-Clause
"""The manifest of a backend: a TOML file of the operators and tests that fail or are skipped, each with its reason.

The key of an entry under [operators] is an OpInfo.full_name or a pattern such as "fft.*". (An OpInfo, an item of
PyTorch's table of operators, is also called an entry.) Under [tests] it is the name of a test of the kit, such as
"streams::test_work_on_one_stream_is_in_order", and under [pytorch] that of one of PyTorch's own tests. An entry under
[[differing]] has one reason for many operators. ``spyre`` reads a manifest in the format of torch-spyre.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class ManifestError(Exception):
    """An error for a manifest that cannot be used; the message names the file, the entry and what is accepted."""


@dataclass(frozen=True)
class OperatorExpectations:
    """The expectations for an entry of PyTorch's table of operators. Each text is a reason, or empty."""

    fails: str = ""  # it may fail; a whole run reports a problem if it passes
    skip: str = ""  # it is not run
    allows_asynchronous_error: str = ""  # key `late`: only the kernel can check the values of inputs, after the call
    strides: str = ""  # in the fuzzer's calls, strides of results may differ from the CPU's
    # With deterministic algorithms results may differ, because PyTorch then computes it in Python except on the CPU.
    deterministic: str = ""
    # In the next two, the common dtypes are NUMBERS of operators/check_dtypes.py.
    more_dtypes: str = ""  # supports common dtypes that neither the CPU nor PyTorch's list for CUDA supports
    fewer_dtypes: str = ""  # rejects uncommon dtypes that the CPU accepts
    other_errors: str = ""  # rejects dtypes that the entry does not list with another subclass of RuntimeError
    comparable: bool = True  # False: the CPU cannot compute a reference
    dtypes: tuple[str, ...] = ()  # the dtypes that are run; empty: all
    tolerances: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # (relative, absolute) by dtype
    differs: Mapping[str, str] = field(default_factory=dict)  # check -> why the results differ and are correct


@dataclass(frozen=True)
class Exclusion:
    """The expectations for a test. Each text is a reason, or empty."""

    fails: str = ""  # it may fail
    skip: str = ""  # it is not run
    strict: bool = True  # with `fails`: the run reports a problem if the test passes


@dataclass(frozen=True)
class FlagReading:
    """A flag of PyTorch that the kernels of some operators read when they run, with the reason and the effect."""

    flag: str
    operators: tuple[str, ...]
    reason: str
    effect: str


@dataclass(frozen=True)
class Manifest:
    """The content of a manifest. Names of operators and tests may be patterns; an exact name has precedence."""

    path: str = ""
    device: str = ""
    imports: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)  # variables of all processes that run tests
    flags_environment: Mapping[str, str] = field(default_factory=dict)  # variables that defer kernels until a wait
    flag_table: str = ""  # module:attribute of another table of operators, for the check "flags"
    flag_readings: tuple[FlagReading, ...] = ()  # key `read_late`
    native: Mapping[str, int] = field(default_factory=dict)  # minimal number of entries without a fallback, by dtype
    most_failing: int | None = None  # maximal number of entries with `fails`
    only_listed: bool = False  # operators without an entry are not run
    # What the backend declares to PyTorch's test framework (``declarations``), for PyTorch's own tests.
    bypass_device_restrictions: bool | None = None  # None: as the backend's own modules have set it
    hw_classification: tuple[str, ...] = ()  # the hardware classifications that are run; empty: all tests
    capabilities: Mapping[str, bool] = field(default_factory=dict)
    variants: bool = False  # a name under [operators] includes its variants: div includes div.floor_rounding
    operators: Mapping[str, OperatorExpectations] = field(default_factory=dict)
    tests: Mapping[str, Exclusion] = field(default_factory=dict)
    pytorch: Mapping[str, Exclusion] = field(default_factory=dict)

    def operator(self, name: str) -> OperatorExpectations:
        """Returns the expectations for an entry of PyTorch's table; empty ones if the manifest does not list it."""
        return self._operator(name) or _NOTHING

    def _operator(self, name: str) -> OperatorExpectations | None:
        """Returns the expectations for an entry, or else for the operator of which it is a variant, or None."""
        found: OperatorExpectations | None = _find(self.operators, name)
        if found is None and self.variants and "." in name:
            return self._operator(name.rpartition(".")[0])
        return found

    def test(self, name: str) -> Exclusion:
        """Returns the expectations for a test of the kit; empty ones if the manifest does not list it."""
        return _find(self.tests, name) or _NO_TEST

    def pytorch_test(self, name: str) -> Exclusion:
        """Returns the expectations for one of PyTorch's own tests; empty ones if the manifest does not list it."""
        return _find(self.pytorch, name) or _NO_TEST

    def runs(self, name: str) -> bool:
        """Returns True if an entry of PyTorch's table is run."""
        return not self.operator(name).skip and (not self.only_listed or self._operator(name) is not None)

    def refuse_unknown(self, table: str, names: Iterable[str], suites: Sequence[str] = ()) -> None:
        """Raises ManifestError if an entry of `table` (operators, tests or pytorch) matches none of the names.

        If suites are given, only the entries of these suites are checked.
        """
        entries = [name for name in getattr(self, table) if not suites or name.partition("::")[0] in suites]
        for message in self.unknown(table, entries, names):
            raise ManifestError(message)

    def unknown(self, table: str, entries: Iterable[str], names: Iterable[str]) -> Iterator[str]:
        """Yields a message for each of the entries of `table` that matches none of the names."""
        known = list(names)
        for name in entries:
            of_variants = self.variants and table == "operators"
            if not any(fnmatchcase(item, name) or (of_variants and item.startswith(f"{name}.")) for item in known):
                close = get_close_matches(name, known, 3)
                hint = f"; the closest: {', '.join(close)}" if close else f"; there are {len(known)}"
                of = {"operators": "entry of PyTorch's table of operators", "tests": "test of the kit"}
                kind = of.get(table, "test of the given files")
                yield f"{self.path}: [{table}] {name!r} names no {kind}{hint}"


_NOTHING, _NO_TEST = OperatorExpectations(), Exclusion()


def _find(table: Mapping[str, Any], name: str) -> Any:
    """Returns the entry of this name, else the first one whose pattern matches it, else None."""
    exact = table.get(name)
    if exact is not None:
        return exact
    return next((entry for pattern, entry in table.items() if fnmatchcase(name, pattern)), None)


def read(path: Path, torch: str = "") -> Manifest:
    """Reads a file and returns its manifest for a version of torch, or for all versions if `torch` is empty.

    Raises ManifestError if the file cannot be read or is invalid.
    """
    try:
        data = tomllib.loads(text_of(path))
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(f"{path}: the file is not TOML: {error}") from error
    return parse(data, str(path), torch)


def text_of(path: Path) -> str:
    """Returns the text of a file. Raises ManifestError if it cannot be read."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: the file cannot be read: {error}") from error


def parse(data: Mapping[str, Any], path: str, torch: str = "") -> Manifest:
    """Returns the manifest of a parsed TOML file. Raises ManifestError if it is invalid."""
    return _Parser(data, path, torch).manifest()


# The keys of an entry under [operators] whose values are texts, with the attributes that contain them.
_TEXTS = {
    {"allows_asynchronous_error": "late"}.get(item.name, item.name): item.name
    for item in fields(OperatorExpectations)
    if item.type == "str"
}
# The keys that each table accepts, with the types of their values.
_TOP = {
    "device": str,
    "import": list,
    "environment": dict,
    "flags": dict,
    "expect": dict,
    "reasons": dict,
    "only_listed": bool,
    "bypass_device_restrictions": bool,
    "hw_classification": list,
    "capabilities": dict,
    "operators": dict,
    "differing": list,
    "tests": dict,
    "pytorch": dict,
}
_FLAGS = {"environment": dict, "table": str, "read_late": list}
_EXPECT = {"native": dict, "most_failing": int}
_READING = {"flag": str, "operators": list, "reason": str, "effect": str}
# An entry holds from the first of these releases of torch on, and before the second.
_RELEASES = {"since": str, "before": str}
_OPERATOR = {
    **dict.fromkeys(_TEXTS, str),
    "comparable": bool,
    "dtypes": list,
    "tolerances": dict,
    "differs": dict,
    **_RELEASES,
}
_TEST = {"fails": str, "skip": str, "strict": bool, **_RELEASES}
_DIFFERENCE = {"reason": str, **_RELEASES}
_DIFFERING = {"check": str, "reason": str, "operators": list}
_KINDS = {str: "text", list: "a list", dict: "a table", bool: "true or false", int: "a whole number"}
_DTYPES = (
    *("float64", "float32", "float16", "bfloat16", "complex128", "complex64", "complex32"),
    *("int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "bool"),
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
)


def known_dtype(name: str) -> bool:
    """Returns True if a manifest may name this dtype."""
    return name in _DTYPES


class _Parser:
    """The parser of one manifest. Its methods return checked values, and raise ManifestError for invalid ones."""

    def __init__(self, data: Mapping[str, Any], path: str, torch: str) -> None:
        self.data = data
        self.path = path
        self.torch = _release(torch)
        self.reasons: Mapping[str, str] = {}

    def manifest(self) -> Manifest:
        top = self.checked(self.data, "the file", _TOP)
        self.reasons = self.texts(top.get("reasons", {}), "[reasons]")
        flags = self.checked(top.get("flags", {}), "[flags]", _FLAGS)
        expect = self.checked(top.get("expect", {}), "[expect]", _EXPECT)
        return Manifest(
            path=self.path,
            device=top.get("device", ""),
            imports=self.names(top.get("import", []), "import"),
            environment=self.texts(top.get("environment", {}), "[environment]"),
            flags_environment=self.texts(flags.get("environment", {}), "[flags] environment"),
            flag_table=flags.get("table", ""),
            flag_readings=tuple(self.reading(item) for item in flags.get("read_late", [])),
            native=self.counts(expect.get("native", {}), "[expect] native"),
            most_failing=expect.get("most_failing"),
            only_listed=top.get("only_listed", False),
            bypass_device_restrictions=top.get("bypass_device_restrictions"),
            hw_classification=tuple(
                name.upper() for name in self.names(top.get("hw_classification", []), "hw_classification")
            ),
            capabilities=self.capabilities(top.get("capabilities", {})),
            operators=self.differing(self.entries("operators", _OPERATOR, self.operator)),
            tests=self.entries("tests", _TEST, self.test),
            pytorch=self.entries("pytorch", _TEST, self.test),
        )

    def error(self, where: str, what: str) -> ManifestError:
        """Returns the error for a place of the file."""
        return ManifestError(f"{self.path}: {where} {what}")

    def checked(self, value: Any, where: str, accepted: Mapping[str, type]) -> Mapping[str, Any]:
        """Returns the table. Raises ManifestError if a key is not accepted or a value has another type."""
        if not isinstance(value, dict):
            raise self.error(where, f"is {value!r}; it has to be a table")
        for key, item in value.items():
            if key not in accepted:
                raise self.error(where, f"has an unknown key {key!r}; accepted are {', '.join(accepted)}")
            kind = accepted[key]
            if not isinstance(item, kind) or (kind is int and isinstance(item, bool)):
                raise self.error(where, f"{key} = {item!r} has to be {_KINDS[kind]}")
        return value

    def texts(self, value: Any, where: str) -> Mapping[str, str]:
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            raise self.error(where, "has to be a table of texts")
        return value

    def names(self, value: Any, where: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(where, f"= {value!r} has to be a list of texts")
        return tuple(value)

    def counts(self, value: Mapping[str, Any], where: str) -> Mapping[str, int]:
        for name, count in value.items():
            self.dtype(name, where)
            if not isinstance(count, int):
                raise self.error(where, f"{name} = {count!r} has to be a whole number")
        return value

    def capabilities(self, value: Mapping[str, Any]) -> Mapping[str, bool]:
        for name, item in value.items():
            if not re.fullmatch(r"\w+\.\w+", name):
                raise self.error(
                    "[capabilities]",
                    f'names {name!r}; a name has a category and is in quotation marks, as "dtype.fp8" = true',
                )
            if not isinstance(item, bool):
                raise self.error("[capabilities]", f"{name} = {item!r} has to be true or false")
        return value

    def dtype(self, name: str, where: str) -> str:
        if name not in _DTYPES:
            raise self.error(where, f"names an unknown dtype {name!r}; accepted are {', '.join(_DTYPES)}")
        return name

    def reason(self, text: str, where: str) -> str:
        """Returns the reason of this name under [reasons], or the text itself, which must have two words or more."""
        if text in self.reasons:
            return self.reasons[text]
        if len(text.split()) < 2:
            known = ", ".join(self.reasons) or "none are listed there"
            raise self.error(where, f"is {text!r}; it has to be a reason, or a name under [reasons]: {known}")
        return text

    def entries(self, table: str, accepted: Mapping[str, type], make: Any) -> Mapping[str, Any]:
        """Returns the entries of a table that apply to this version of torch, each made by `make(entry, where)`."""
        found = {}
        for name, value in self.data.get(table, {}).items():
            where = f"[{table}.{name!r}]"
            entry = self.checked(value, where, accepted)
            if self.applies(entry, where):
                found[name] = make(entry, where)
        return found

    def applies(self, entry: Mapping[str, Any], where: str) -> bool:
        """Returns True if an entry applies to this version of torch. Raises ManifestError if it names no release."""
        releases = {key: _release(entry[key]) for key in _RELEASES if key in entry}
        for key, release in releases.items():
            if not release:
                raise self.error(where, f'{key} = {entry[key]!r} has to be a release of torch, such as "2.14"')
        if not self.torch:
            return True
        return releases.get("since", ()) <= self.torch and ("before" not in releases or self.torch < releases["before"])

    def operator(self, entry: Mapping[str, Any], where: str) -> OperatorExpectations:
        texts = {name: self.reason(entry[key], f"{where} {key}") for key, name in _TEXTS.items() if key in entry}
        differs = {}
        for check, value in entry.get("differs", {}).items():
            item = {"reason": value} if isinstance(value, str) else value
            item = self.checked(item, f"{where} differs {check!r}", _DIFFERENCE)
            if self.applies(item, f"{where} differs {check!r}"):
                differs[check] = self.reason(item.get("reason", ""), f"{where} differs {check!r}")
        return OperatorExpectations(
            **texts,
            comparable=entry.get("comparable", True),
            dtypes=tuple(self.dtype(name, where) for name in self.names(entry.get("dtypes", []), f"{where} dtypes")),
            tolerances={
                self.dtype(name, f"{where} tolerances"): self.tolerance(value, f"{where} tolerances {name}")
                for name, value in entry.get("tolerances", {}).items()
            },
            differs=differs,
        )

    def differing(self, operators: Mapping[str, OperatorExpectations]) -> Mapping[str, OperatorExpectations]:
        """Returns the operators with the entries of [[differing]] added."""
        found = dict(operators)
        for value in self.data.get("differing", ()):
            where = "[[differing]]"
            entry = self.complete(value, where, _DIFFERING, optional=_RELEASES)
            if not self.applies(entry, f"{where} {entry['check']!r}"):
                continue
            reason = self.reason(entry["reason"], f"{where} reason")
            for name in self.names(entry["operators"], f"{where} operators"):
                known = _find(found, name) or _NOTHING
                found[name] = replace(known, differs={**known.differs, entry["check"]: reason})
        return found

    def complete(
        self, value: Any, where: str, required: Mapping[str, type], optional: Mapping[str, type] | None = None
    ) -> Mapping[str, Any]:
        """Returns the table. Raises ManifestError if one of the required keys is missing."""
        entry = self.checked(value, where, {**required, **(optional or {})})
        absent = [key for key in required if key not in entry]
        if absent:
            raise self.error(where, f"lacks {', '.join(absent)}")
        return entry

    def tolerance(self, value: Any, where: str) -> tuple[float, float]:
        numbers = isinstance(value, list) and all(isinstance(item, (int, float)) and item >= 0 for item in value)
        if not numbers or len(value) != 2:
            raise self.error(where, f"= {value!r} has to be [relative, absolute], two numbers")
        return float(value[0]), float(value[1])

    def test(self, entry: Mapping[str, Any], where: str) -> Exclusion:
        texts = {key: self.reason(entry[key], f"{where} {key}") for key in ("fails", "skip") if key in entry}
        return Exclusion(texts.get("fails", ""), texts.get("skip", ""), entry.get("strict", True))

    def reading(self, value: Any) -> FlagReading:
        where = "[[flags.read_late]]"
        entry = self.complete(value, where, _READING)
        names = self.names(entry["operators"], f"{where} operators")
        return FlagReading(entry["flag"], names, self.reason(entry["reason"], f"{where} reason"), entry["effect"])


def _release(version: str) -> tuple[int, ...]:
    """Returns the major and minor number of a version, or an empty tuple if the text is no version."""
    parts = version.split(".")[:2]
    return tuple(int(part) for part in parts) if len(parts) == 2 and all(part.isdigit() for part in parts) else ()
