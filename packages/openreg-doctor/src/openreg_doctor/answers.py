# SPDX-License-Identifier: BSD-3-Clause
"""Parses and validates the report of a child process about its steps.

A child runs a backend's code, which may end the process at any byte, run twice after a fork, or write anything. So each
line is untrusted input. Only requested steps count, and only results in the form of their step. Texts are truncated,
and characters that would control a terminal are replaced. No function raises for anything that a child can write.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .probes.request import Request, import_step

END = "end of the process"  # not a step of a child: how its process ended after the last step
REPORT = "report"  # not a step either: the lines that cannot be read
MOST_BYTES = 16 << 20  # of one child's report; a real one has less than 200 kB
_LONGEST_TEXT = 4000  # characters
_FINISHED = {"finished": True}  # the last line of a complete report

# The reported result of a step: its "name", and either "value", or "error" with "cause", or "unseen".
StepEntry = dict[str, Any]
# A predicate that returns True if a value has the form of a step's result.
ValuePredicate = Callable[[Any], bool]


@dataclass
class Answers:
    """The parsed report of one child."""

    entries: dict[str, StepEntry] = field(default_factory=dict)  # results by step, in the order in which steps ended
    open: list[str] = field(default_factory=list)  # steps that began and did not end, in the order of their beginnings
    finished: bool = False  # True: the child completed its request
    unreadable: int = 0  # number of lines that cannot be used; an incomplete last line does not count
    first_unreadable: str = ""


def read(data: bytes, request: Request) -> Answers:
    """Returns the parsed report on the steps of a request.

    Of several results of a step the first counts, and none before the line with which the step begins.
    """
    answers, shapes = Answers(), _shapes(request)
    *lines, _ = data[:MOST_BYTES].split(b"\n")  # the last item is an incomplete line, or empty
    for line in lines:
        problem = _take(answers, _parsed(line), shapes)
        if problem:
            answers.unreadable += 1
            answers.first_unreadable = (
                answers.first_unreadable or f"{problem}: {shown(line.decode('utf-8', 'replace'))}"
            )
    return answers


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):  # no UTF-8, no JSON, a number with too many digits, or nested too deeply
        return None


def _take(answers: Answers, entry: Any, shapes: dict[str, ValuePredicate]) -> str:
    """Records a parsed line in ``answers``. Returns what is wrong with the line; empty if nothing is."""
    if not isinstance(entry, dict):
        return "not a JSON object"
    if entry == _FINISHED:
        answers.finished = True
        return ""
    begins = set(entry) == {"begin"}
    name = entry["begin"] if begins else entry.get("name")
    if not isinstance(name, str) or name not in shapes:
        return "not a requested step"
    if name in answers.entries or (begins and name in answers.open):
        return ""  # both processes report after the backend's code forked; the first line counts
    if begins:
        answers.open.append(name)
        return ""
    if name not in answers.open:
        return "the end of a step that did not begin"
    result = _validated(name, entry, shapes[name])
    if result is None:
        return "not a valid result of its step"
    answers.open.remove(name)
    answers.entries[name] = result
    return ""


def _validated(name: str, entry: StepEntry, shape: ValuePredicate) -> StepEntry | None:
    """Returns the result with cleaned texts; None if its fields are not those of a result."""
    fields = {key: value for key, value in entry.items() if key != "name"}
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


_KEYS = ("PrivateUse1", "AutogradPrivateUse1", "AutocastPrivateUse1")
_ENTRIES = _table(_text)
_CASE = _one_of(
    _fields(given=_list(_text), called=_text, types=_list(_text), dtypes=_list(_text)),
    _fields(given=_list(_text), error=_text),
    _fields(given=_list(_text)),
)
# The forms of the results of the worker's functions.
_OF_STEPS: dict[str, ValuePredicate] = {
    "import torch": _fields(version=_text, file=_text, backend=_text, present=_flag),
    "entry points": _list(_fields(point=_text, backend=_text, error=_text)),
    "device": _fields(backend=_text, module=_flag, present=_flag),
}
_OF_PROBES: dict[str, ValuePredicate] = {
    "attributes": _ENTRIES,
    "initialize": _flag,
    "properties": _fields(
        available=_one_of(_flag, _nothing), count=_count, devices=_list(_table(_one_of(_text, _number)))
    ),
    "operators": _fields(operators=_table(_count, *_KEYS), libraries=_table(_count), fallbacks=_table(_flag, *_KEYS)),
    "operator": _one_of(
        _fields(candidates=_list(_text), known=_list(_text)),
        _fields(
            name=_text,
            schema=_text,
            registered=_text,
            registrations=_ENTRIES,
            table=_ENTRIES,
            others=_table(_ENTRIES),
        ),
    ),
    "autocast": _one_of(_fields(), _fields(float32=_CASE, float16=_CASE, mixed=_CASE)),
    "trial": _one_of(_fields(error=_text), _fields(calls=_list(_text), shape=_list(_count), autocast=_ENTRIES)),
}


def _shapes(request: Request) -> dict[str, ValuePredicate]:
    """Returns every step that a child may report for this request, with the form of its result."""
    shapes: dict[str, ValuePredicate] = {import_step(module): _text for module in request.imports}
    shapes.update({Request.PROBE + row: _flag for row in request.rows})
    shapes.update({f"{Request.PROBE}{row.partition('.')[0]}.": _flag for row in request.rows})
    shapes.update({Request.PROBE + name: shape for name, shape in _OF_PROBES.items()})
    return {**shapes, **_OF_STEPS}
