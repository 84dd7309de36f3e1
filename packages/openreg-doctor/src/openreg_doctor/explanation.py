# SPDX-License-Identifier: BSD-3-Clause
"""Explains how an operator is implemented on a device, from the tables of PyTorch's dispatcher.

A table has one entry per dispatch key, a text such as "registered at FILE:LINE [kernel]".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from .examination import Examination

# Match the place of a registration, and the kind of kernel, in an entry of the dispatcher's table.
_SITE = re.compile(r"registered at (.+?)(?: \[(.+)\])?$")
_KIND = re.compile(r" \[([^\]]+)\]$")
# The ways in which an operator is implemented, each in one word.
NATIVE, COMPOSITE, FALLBACK = "native", "composite", "fallback"
# PyTorch registers there the functional and the in-place overloads that it makes of the out= overload of a device.
_MADE_OF_OUT = "CompositeExplicitAutogradNonFunctional"
# The profiler range that a fallback may record for an operator, so that it is recognized here:
# NAMESPACE::fallback OPERATOR.
_FALLBACK_RANGE = re.compile(r"\w+::fallback (.+)")
# The dispatcher's name for the kind of a kernel, and its meaning.
_ORIGINS = {
    "kernel": f"{NATIVE}: a kernel for PrivateUse1",
    "math kernel": f"{COMPOSITE}: it calls other operators, whose derivatives yield its derivative "
    "(CompositeImplicitAutograd)",
    "default backend kernel": f"{COMPOSITE}: an implementation for every backend, which calls other operators "
    "(CompositeExplicitAutograd)",
    "backend fallback": f"{FALLBACK}: the backend's function for operators without a kernel",
}
_HALF, _FULL = "torch.float16", "torch.float32"
_LOWER_PRECISION = "lower precision: float32 operands are cast to the autocast type"
_PROMOTION = "promote: the widest type among the operands"


@dataclass(frozen=True)
class Fact:
    """The description of one aspect of an operator, such as autograd."""

    aspect: str
    text: str


@dataclass(frozen=True)
class Explanation:
    """A description of how an operator is implemented."""

    name: str
    schema: str
    facts: tuple[Fact, ...]


def explain(examination: Examination) -> Explanation | None:
    """Returns the explanation of the operator to examine, from the results of probes: steps of a child process.

    Returns None if the probe that reads the dispatcher's tables did not succeed. Raises LookupError, with suggestions,
    if the name matches no operator or several.
    """
    request = examination.order  # what the user asked to examine
    step = examination.probe("operator")
    if step is None or not step.done:
        return None
    found: dict[str, Any] = step.value
    if "candidates" in found:
        raise LookupError(_suggest(request.operator, found["candidates"], found["known"]))
    entries: dict[str, str] = found["table"]
    trial_step = examination.probe("trial")
    # The root cause of a step is empty unless the step failed. A failed trial is reported as the text of its error.
    failure = trial_step.text if trial_step is not None and trial_step.root_cause else "the call was not tried"
    trial: dict[str, Any] = trial_step.value if trial_step is not None and trial_step.done else {"error": failure}
    autocast_step = examination.probe("autocast")
    observed: dict[str, Any] = autocast_step.value if autocast_step is not None and autocast_step.done else {}
    facts = [
        Fact(request.device, _serving_overload(found) or _describe_kernel(entries) + _note_fallbacks(entries, trial)),
        *_calls(trial),
        Fact("autograd", _autograd(entries.get("AutogradPrivateUse1", ""))),
        Fact("autocast", _autocast(entries.get("AutocastPrivateUse1", ""), observed, trial)),
        Fact("meta", _meta(entries.get("Meta", ""))),
    ]
    facts += [Fact(f"overload {name}", _describe_kernel(table)) for name, table in found["others"].items()]
    return Explanation(found["name"], found["schema"], tuple(facts))


def _suggest(name: str, candidates: list[str], known: list[str]) -> str:
    if candidates:
        listed = ", ".join(sorted(candidates))
        return f"--op: {name!r} has several overloads; give one of them: {listed}"
    bare = name.replace("torch.ops.", "").replace("torch.", "aten::")
    if "::" not in bare:
        bare = f"aten::{bare}"
    close = get_close_matches(bare, known, 5, 0.7)
    hint = f"; similar operators: {', '.join(close)}" if close else ""
    return f"--op: there is no operator {name!r}{hint}. A package registers its operators when --import imports it"


def _site(entry: str) -> tuple[str, str]:
    """Returns the place where an entry was registered, and the dispatcher's name for its kind."""
    kind = _KIND.search(entry)
    site = _SITE.search(entry)
    place = site.group(1) if site else "?"
    # A folder of the machine that built PyTorch is cut off, because it does not exist here.
    place = re.sub(r"^/\S*/(?=(?:build/)?(?:aten|torch|c10)/)", "", place)
    return re.sub(r"^.*site-packages/", "", place), kind.group(1) if kind else ""


def kind_of_kernel(entries: dict[str, str]) -> str:
    """Returns NATIVE, COMPOSITE or FALLBACK for the table of an overload; empty if nothing implements it."""
    entry = entries.get("PrivateUse1")
    return "" if entry is None else _ORIGINS.get(_site(entry)[1], NATIVE).partition(":")[0]


def _serving_overload(found: dict[str, Any]) -> str:
    """Returns which overload's kernel serves an overload that PyTorch made of it; empty if it was made of none."""
    place, _ = _site(found["table"].get("PrivateUse1", ""))
    if _MADE_OF_OUT not in place:
        return ""
    native = [name for name, table in found["others"].items() if kind_of_kernel(table) == NATIVE]
    return f"{NATIVE} through {' or '.join(native)}, of which PyTorch makes it, registered at {place}" if native else ""


def _note_fallbacks(entries: dict[str, str], trial: dict[str, Any]) -> str:
    """Returns a note on the operators that a composite operator calls and that fall back to the CPU; empty if none.

    ``trial`` is the result of ``probes.trial.run()``.
    """
    fallen = [found[1] for call in trial.get("calls", ()) if (found := _FALLBACK_RANGE.fullmatch(call))]
    return (
        f"; it calls {', '.join(fallen)}, which falls back to the CPU"
        if fallen and kind_of_kernel(entries) == COMPOSITE
        else ""
    )


def _describe_kernel(entries: dict[str, str]) -> str:
    """Describes the entry for the dispatch key PrivateUse1 in the table of an overload."""
    entry = entries.get("PrivateUse1")
    if entry is None:
        return "no kernel: a call raises NotImplementedError; register a kernel for PrivateUse1, or a fallback"
    place, kind = _site(entry)
    if entry.startswith("fallthrough"):
        return f"fallthrough: the kernel of the next dispatch key runs, registered at {place}"
    return f"{_ORIGINS.get(kind, kind or 'a kernel')}, registered at {place}"


def _calls(trial: dict[str, Any]) -> list[Fact]:
    """Returns the other operators that a call of the operator ran.

    ``trial`` is the result of ``probes.trial.run()``, which calls the operator with small operands.
    """
    if "error" in trial:
        return [Fact("a call", f"could not be tried with small operands: {trial['error']}")]
    shape = "x".join(map(str, trial["shape"]))
    if not trial["calls"]:
        return [Fact("a call", f"with {shape} operands, it called no operator of another name")]
    return [Fact("a call", f"with {shape} operands, it called {', '.join(trial['calls'])}")]


def _autograd(entry: str) -> str:
    """Describes the entry for the dispatch key AutogradPrivateUse1."""
    place, kind = _site(entry)
    if not entry:
        return "none"
    if kind == "math kernel":
        return f"by the derivatives of the operators that it calls, registered at {place}"
    if kind == "autograd kernel":
        return f"PyTorch's derivative for all backends, or its error that there is none, registered at {place}"
    if entry.startswith("fallthrough") or kind == "backend fallback":
        return f"no kernel: autograd does not record the call, registered at {place}"
    return f"a kernel of the backend, registered at {place}"


def _autocast(entry: str, observed: dict[str, Any], trial: dict[str, Any]) -> str:
    """Describes the entry for the dispatch key AutocastPrivateUse1, whose kernel is the operator's autocast rule."""
    if not entry:
        return "no rules for this backend"
    place, _ = _site(entry)
    if entry.startswith("fallthrough"):
        return f"no rule: it runs in the dtypes of its operands, registered at {place}"
    return f"{_rule_of_call(observed) or _rule(trial.get('autocast', {}))}, registered at {place}"


def _rule_of_call(observed: dict[str, Any]) -> str:
    """Returns the autocast rule, from the arguments with which it called the operator; empty if it did not call it.

    ``observed`` is the result of ``probes.autocast.observe()``. It has a call for each of the cases "float32",
    "float16" and "mixed" (both), under autocast to float16. In a call, ``given`` has the dtypes of the tensors that the
    rule got, and ``error`` is the exception that it raised. If it called an operator, ``called`` is its name,
    ``types`` has the dtypes of the operator's tensors, and ``dtypes`` has its arguments that are dtypes themselves.
    """
    refusals = [call["error"] for call in observed.values() if "error" in call]
    if refusals:
        return f"refused: {refusals[0]}"
    if not observed or not all("called" in call for call in observed.values()):
        return ""
    full, half, mixed = (observed[case] for case in ("float32", "float16", "mixed"))
    if _HALF in full["types"]:
        return _LOWER_PRECISION
    if _FULL in half["types"]:
        return "float32: operands in a lower precision are cast up"
    if _FULL in half["dtypes"]:
        return f"float32 result: operands are not cast, and {half['called']} is called with dtype=torch.float32"
    if mixed["types"].count(_HALF) < mixed["given"].count(_HALF):
        return _PROMOTION
    return "a rule that leaves operands in float32 and float16 as they are"


def _rule(results: dict[str, str]) -> str:
    """Returns the autocast rule, from the dtypes of results for operands in float32 and in float16."""
    from_full, from_half = results.get(_FULL, ""), results.get(_HALF, "")
    if from_full == _HALF:
        return _LOWER_PRECISION
    if from_half == _FULL:
        return "float32: operands or results in a lower precision are cast up"
    if (from_full, from_half) == (_FULL, _HALF):
        return _PROMOTION
    if from_full and not from_full.startswith("torch."):
        return f"refused, or not tried with these operands: {from_full}"
    return "a rule that a call with small operands does not show"


def _meta(entry: str) -> str:
    """Describes the entry for the dispatch key Meta, whose kernel computes sizes, strides and dtypes alone."""
    if not entry:
        return "no meta function: torch.compile, torch.export and FakeTensor reject it"
    place, kind = _site(entry)
    if kind == "math kernel":
        return f"by the meta functions of the operators that it calls, registered at {place}"
    return f"a meta function, registered at {place}"
