# SPDX-License-Identifier: BSD-3-Clause
"""Parses and validates the report of a child process about its steps: imports, and probes of the device.

The report is a file with a JSON object per line: one before and one after each step, and a last one. A child runs a
backend's code, which may end the process at any byte, run twice after a fork, or write anything. So each line is
untrusted input. Only requested steps count, and only results in the form of their step. Texts are truncated, and
characters that would control a terminal are replaced. No function raises for anything that a child can write.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .probes.request import Request, import_step, registration_probe

# Names in the results that are no steps of a child.
END = "end of the process"  # how the process ended after the last step
REPORT = "report"  # the lines that cannot be read
MOST_BYTES = 16 << 20  # of one child's report; a real one has less than 200 kB
_LONGEST_TEXT = 4000  # characters
_FINISHED = {"finished": True}  # the last line of a complete report

# The reported result of a step: its "name", and either "value" (what it returned), or "error" with "cause" (the
# exception and its root cause), or "unseen" (why the step could not check anything).
ReportedResult = dict[str, Any]
# A predicate that returns True if a value has the form of a step's result.
ValuePredicate = Callable[[Any], bool]


@dataclass
class ChildReport:
    """The parsed report of one child process."""

    results: dict[str, ReportedResult] = field(default_factory=dict)  # by step, in the order in which steps ended
    open: list[str] = field(default_factory=list)  # steps that began and did not end, in the order of their beginnings
    finished: bool = False  # True: the child completed its request
    unreadable: int = 0  # number of lines that cannot be used; an incomplete last line does not count
    first_unreadable: str = ""


def read(data: bytes, request: Request) -> ChildReport:
    """Returns the parsed report on the steps of a request.

    Of several results of a step the first counts, and none before the line with which the step begins.
    """
    report, shapes = ChildReport(), _shapes(request)
    *lines, _ = data[:MOST_BYTES].split(b"\n")  # the last item is an incomplete line, or empty
    for line in lines:
        problem = _take(report, _parsed(line), shapes)
        if problem:
            report.unreadable += 1
            report.first_unreadable = report.first_unreadable or f"{problem}: {shown(line.decode('utf-8', 'replace'))}"
    return report


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):  # no UTF-8, no JSON, a number with too many digits, or nested too deeply
        return None


def _take(report: ChildReport, line: Any, shapes: dict[str, ValuePredicate]) -> str:
    """Records a parsed line in ``report``. Returns what is wrong with the line; empty if nothing is."""
    if not isinstance(line, dict):
        return "not a JSON object"
    if line == _FINISHED:
        report.finished = True
        return ""
    begins = set(line) == {"begin"}
    name = line["begin"] if begins else line.get("name")
    if not isinstance(name, str) or name not in shapes:
        return "not a requested step"
    if name in report.results or (begins and name in report.open):
        return ""  # both processes report after the backend's code forked; the first line counts
    if begins:
        report.open.append(name)
        return ""
    if name not in report.open:
        return "the end of a step that did not begin"
    result = _validated(name, line, shapes[name])
    if result is None:
        return "not a valid result of its step"
    report.open.remove(name)
    report.results[name] = result
    return ""


def _validated(name: str, line: ReportedResult, shape: ValuePredicate) -> ReportedResult | None:
    """Returns the result with cleaned texts; None if its fields are not those of a result."""
    fields = {key: value for key, value in line.items() if key != "name"}
    if set(fields) == {"value"}:
        value = fields["value"]
        if shape(value):
            return {"name": name, "value": _clean(value)}
        return {"name": name, "error": f"the step reported a result of an unexpected form: {shown(value)}"}
    if set(fields) in ({"error", "cause"}, {"unseen"}) and all(isinstance(value, str) for value in fields.values()):
        first = "unseen" if "unseen" in fields else "error"
        if fields[first]:
            return {"name": name, **_clean(fields)}
    return None


def shown(value: object) -> str:
    """Returns the beginning of a text or of another value, in one line and without control characters."""
    text = value if isinstance(value, str) else repr(value)
    return " ".join(clean(text[:200]).split()) + ("..." if len(text) > 200 else "")


def clean(text: str) -> str:
    """Returns the text, truncated, with U+FFFD for characters that control a terminal or cannot be encoded."""
    cut = text[:_LONGEST_TEXT] + ("..." if len(text) > _LONGEST_TEXT else "")
    return "".join(character if character.isprintable() or character in "\n\t" else "\ufffd" for character in cut)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): _clean(item) for key, item in value.items()}
    return value


# Predicates for the forms of results, built from those for JSON's types.


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _nothing(value: Any) -> bool:
    return value is None


def _number(value: Any) -> bool:
    return isinstance(value, int | float)


def _one_of(*shapes: ValuePredicate) -> ValuePredicate:
    return lambda value: any(shape(value) for shape in shapes)


def _list(shape: ValuePredicate) -> ValuePredicate:
    return lambda value: isinstance(value, list) and all(map(shape, value))


def _table(shape: ValuePredicate, *needed: str) -> ValuePredicate:
    """Returns a predicate for objects with any names, among them the needed ones, whose values all have this form."""
    return lambda value: isinstance(value, dict) and set(needed) <= set(value) and all(map(shape, value.values()))


def _fields(**shapes: ValuePredicate) -> ValuePredicate:
    """Returns a predicate for objects with exactly these names, each with a value of its form."""
    return lambda value: (
        isinstance(value, dict)
        and set(value) == set(shapes)
        and all(shape(value[name]) for name, shape in shapes.items())
    )


_DISPATCH_KEYS = ("PrivateUse1", "AutogradPrivateUse1", "AutocastPrivateUse1")
_TEXTS_BY_NAME = _table(_text)
# One call under autocast, as probes/autocast.py observes it.
_AUTOCAST_CALL = _one_of(
    _fields(given=_list(_text), called=_text, types=_list(_text), dtypes=_list(_text)),
    _fields(given=_list(_text), error=_text),
    _fields(given=_list(_text)),
)
# The forms of the results of steps that are no probes, by name. probes/child.py has their functions.
_OF_STEPS: dict[str, ValuePredicate] = {
    "import torch": _fields(version=_text, file=_text, backend=_text, present=_flag, accelerator=_text),
    "entry points": _list(_fields(point=_text, backend=_text, error=_text)),
    "device": _fields(backend=_text, module=_flag, present=_flag),
}
# The forms of the results of probes other than exercises, by name. The comments name the functions of the folder probes
# that return them. An exercise, which is a call that fails if the backend lacks a row of hooks.toml, returns a bool.
_OF_PROBES: dict[str, ValuePredicate] = {
    "attributes": _TEXTS_BY_NAME,  # attributes.look_up()
    "initialize": _flag,  # ProbedDevice.initialize()
    "properties": _fields(  # ProbedDevice.describe()
        available=_one_of(_flag, _nothing), count=_count, devices=_list(_table(_one_of(_text, _number)))
    ),
    "operators": _fields(  # operators.count()
        operators=_table(_count, *_DISPATCH_KEYS),
        libraries=_table(_count),
        fallbacks=_table(_flag, *_DISPATCH_KEYS),
    ),
    "operator": _one_of(  # operators.explain()
        _fields(candidates=_list(_text), known=_list(_text)),
        _fields(
            name=_text,
            schema=_text,
            registered=_text,
            registrations=_TEXTS_BY_NAME,
            table=_TEXTS_BY_NAME,
            others=_table(_TEXTS_BY_NAME),
        ),
    ),
    "autocast": _one_of(  # autocast.observe()
        _fields(), _fields(float32=_AUTOCAST_CALL, float16=_AUTOCAST_CALL, mixed=_AUTOCAST_CALL)
    ),
    "trial": _one_of(  # trial.run(), which calls the operator with small operands
        _fields(error=_text), _fields(calls=_list(_text), shape=_list(_count), autocast=_TEXTS_BY_NAME)
    ),
}


def _shapes(request: Request) -> dict[str, ValuePredicate]:
    """Returns every step that a child may report for this request, with the form of its result."""
    steps: dict[str, ValuePredicate] = {import_step(module): _text for module in request.imports}
    probes = dict.fromkeys((*request.row_keys, *map(registration_probe, request.row_keys)), _flag)
    probes.update(_OF_PROBES)
    steps.update({Request.PROBE_PREFIX + name: shape for name, shape in probes.items()})
    return {**steps, **_OF_STEPS}
