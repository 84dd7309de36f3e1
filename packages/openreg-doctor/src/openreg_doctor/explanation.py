# SPDX-License-Identifier: BSD-3-Clause
"""Explains how an operator is served on a device, from what PyTorch's dispatcher says of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from .examination import Examination

_SITE = re.compile(r"registered at (.+?)(?: \[(.+)\])?$")
_KIND = re.compile(r" \[([^\]]+)\]$")
# In one word, how an operator is served.
NATIVE, COMPOSITE, FALLBACK = "native", "composite", "fallback"
# What a fallback may call its calls in a profile, so that they are known here: NAMESPACE::fallback OPERATOR.
_FALLBACK_RANGE = re.compile(r"\w+::fallback (.+)")
# How the dispatcher calls the way in which it found a kernel for a key.
_SERVED = {
    "kernel": f"{NATIVE}: a kernel of its own",
    "math kernel": f"{COMPOSITE}: an implementation in other operators, by whose derivatives it has its own "
    "(CompositeImplicitAutograd)",
    "default backend kernel": f"{COMPOSITE}: an implementation for every backend, in other operators "
    "(CompositeExplicitAutograd)",
    "backend fallback": f"{FALLBACK}: the backend's function for operators without a kernel",
}
_HALF, _FULL = "torch.float16", "torch.float32"
_LOWER_PRECISION = "lower precision: float32 operands are cast to the autocast type"
_PROMOTION = "promote: the widest type among the operands"


@dataclass(frozen=True)
class Fact:
    """One aspect of the operator."""

    aspect: str
    text: str


@dataclass(frozen=True)
class Explanation:
    """How an operator is served."""

    name: str
    schema: str
    facts: tuple[Fact, ...]


def explain(examination: Examination) -> Explanation | None:
    """The explanation; None if the device could not be examined.

    Raises LookupError, with suggestions, if the name means no operator or several.
    """
    step = examination.probe("operator")
    if step is None or not step.done:
        return None
    found: dict[str, Any] = step.value
    asked = examination.order.operator
    if "candidates" in found:
        raise LookupError(_suggest(asked, found["candidates"], found["known"]))
    entries: dict[str, str] = found["table"]
    tried = examination.probe("trial")
    failure = tried.text if tried is not None and tried.root else "it was not tried"
    trial: dict[str, Any] = tried.value if tried is not None and tried.done else {"error": failure}
    observed = examination.probe("autocast")
    reached: dict[str, Any] = observed.value if observed is not None and observed.done else {}
    facts = [
        Fact(examination.order.device, _served(entries) + _end(entries, trial)),
        *_calls(trial),
        Fact("autograd", _autograd(entries.get("AutogradPrivateUse1", ""))),
        Fact("autocast", _autocast(entries.get("AutocastPrivateUse1", ""), reached, trial)),
        Fact("meta", _meta(entries.get("Meta", ""))),
    ]
    facts += [Fact(f"overload {name}", _served(table)) for name, table in found["others"].items()]
    return Explanation(found["name"], found["schema"], tuple(facts))


def _suggest(asked: str, candidates: list[str], known: list[str]) -> str:
    if candidates:
        listed = ", ".join(sorted(candidates))
        return f"{asked!r} has several overloads; ask for one of them: {listed}"
    bare = asked.replace("torch.ops.", "").replace("torch.", "aten::")
    if "::" not in bare:
        bare = f"aten::{bare}"
    close = get_close_matches(bare, known, 5, 0.7)
    hint = f"; is one of these meant? {', '.join(close)}" if close else ""
    return f"there is no operator {asked!r}{hint}. Operators of a package are known once it is imported (--import)"


def _site(entry: str) -> tuple[str, str]:
    """Where it was registered and how the dispatcher calls the kind of entry."""
    kind = _KIND.search(entry)
    site = _SITE.search(entry)
    place = site.group(1) if site else "?"
    # Paths of the machine that built PyTorch mean nothing here.
    place = re.sub(r"^/\S*/(?=(?:build/)?(?:aten|torch|c10)/)", "", place)
    return re.sub(r"^.*site-packages/", "", place), kind.group(1) if kind else ""


def served(entries: dict[str, str]) -> str:
    """How an overload is served, in one of the words above; empty if nothing serves it."""
    entry = entries.get("PrivateUse1")
    return "" if entry is None else _SERVED.get(_site(entry)[1], NATIVE).partition(":")[0]


def _end(entries: dict[str, str], trial: dict[str, Any]) -> str:
    """What becomes of a composite operator whose parts fall back."""
    fallen = [found[1] for call in trial.get("calls", ()) if (found := _FALLBACK_RANGE.fullmatch(call))]
    return f"; of these, {', '.join(fallen)} falls back to the CPU" if fallen and served(entries) == COMPOSITE else ""


def _served(entries: dict[str, str]) -> str:
    entry = entries.get("PrivateUse1")
    if entry is None:
        return "nobody: it raises NotImplementedError. Register a kernel for PrivateUse1, or a fallback"
    place, kind = _site(entry)
    if entry.startswith("fallthrough"):
        return f"fallthrough: the next dispatch key serves it, registered at {place}"
    return f"{_SERVED.get(kind, kind or 'a kernel')}, registered at {place}"


def _calls(trial: dict[str, Any]) -> list[Fact]:
    if "error" in trial:
        return [Fact("a call", f"could not be tried with small operands: {trial['error']}")]
    shape = "x".join(map(str, trial["shape"]))
    if not trial["calls"]:
        return [Fact("a call", f"with {shape} operands, it called no operator of another name")]
    return [Fact("a call", f"with {shape} operands, it called {', '.join(trial['calls'])}")]


def _autograd(entry: str) -> str:
    place, kind = _site(entry)
    if not entry:
        return "none"
    if kind == "math kernel":
        return f"by the derivatives of the operators it calls, registered at {place}"
    if kind == "autograd kernel":
        return f"PyTorch's derivative (or its refusal of one) for all backends, registered at {place}"
    if entry.startswith("fallthrough") or kind == "backend fallback":
        return f"none of its own: the call goes on without a record, registered at {place}"
    return f"a kernel of the backend, registered at {place}"


def _autocast(entry: str, reached: dict[str, Any], trial: dict[str, Any]) -> str:
    if not entry:
        return "no rules for this backend"
    place, _ = _site(entry)
    if entry.startswith("fallthrough"):
        return f"no rule: it runs in the types it is given, registered at {place}"
    return f"{_rule_of_call(reached) or _rule(trial.get('autocast', {}))}, registered at {place}"


def _rule_of_call(reached: dict[str, Any]) -> str:
    """The rule that shows in what the operator was called with; empty where it did not call the operator."""
    refusals = [call["error"] for call in reached.values() if "error" in call]
    if refusals:
        return f"refused: {refusals[0]}"
    if not reached or not all("called" in call for call in reached.values()):
        return ""
    full, half, mixed = (reached[case] for case in ("float32", "float16", "mixed"))
    if _HALF in full["types"]:
        return _LOWER_PRECISION
    if _FULL in half["types"]:
        return "float32: operands in a lower precision are cast up"
    if _FULL in half["dtypes"]:
        return f"float32 result: operands stay, and {half['called']} is called with dtype=torch.float32"
    if mixed["types"].count(_HALF) < mixed["given"].count(_HALF):
        return _PROMOTION
    return "a rule that leaves operands in float32 and float16 as they are"


def _rule(results: dict[str, str]) -> str:
    """The rule that the types of results show, of operands in float32 and in float16."""
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
    if not entry:
        return "none: torch.compile, torch.export and FakeTensor cannot take it"
    place, kind = _site(entry)
    if kind == "math kernel":
        return f"by the operators it calls, registered at {place}"
    return f"shapes without data, registered at {place}"
