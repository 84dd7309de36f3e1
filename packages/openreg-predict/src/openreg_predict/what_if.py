# SPDX-License-Identifier: BSD-3-Clause
"""Parses and applies what-ifs: changes of a chip or a program whose prediction is compared with the unchanged one."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from openreg_predict.description import Description, Quantity
from openreg_predict.predict import Prediction, predict
from openreg_predict.trace import Program

# The accepted what-ifs, for the help and for errors.
FORMS = (
    "bandwidth=2 (times the memory's), compute=2 (times all rates), memory=2 (times the size), launch=0.5 (times the "
    "launch times), dtype=bfloat16, graph, devices=2, set:NAME=VALUE (of the script)"
)


class WhatIfError(ValueError):
    """An error of a text that is no what-if. The message lists the accepted ones."""


@dataclass(frozen=True)
class WhatIf:
    """One change of a chip or a program. ``text`` is what the user wrote: ``key`` or ``key=value``."""

    text: str
    key: str
    value: str = ""


def parse(text: str) -> WhatIf:
    """Parses a what-if as ``FORMS`` lists them. Raises :class:`WhatIfError` for any other text."""
    key, _, value = text.partition("=")
    if key == "graph" and not value:
        return WhatIf(text, key)
    if key in ("bandwidth", "compute", "memory", "launch"):
        is_known = _is_factor(value)
    elif key == "devices":
        is_known = value.isdecimal() and 1 <= int(value) <= 10**6
    elif key == "dtype":
        is_known = isinstance(getattr(torch, value, None), torch.dtype)
    else:
        is_known = key.startswith("set:") and key.removeprefix("set:").isidentifier() and bool(value)
    if is_known:
        return WhatIf(text, key, value)
    raise WhatIfError(f"{text!r} is no what-if; give one of {FORMS}")


def _is_factor(text: str) -> bool:
    try:
        return 0 < float(text) <= 1e6
    except ValueError:
        return False


def setting(change: WhatIf) -> dict[str, object]:
    """Returns {name: value} for a variable of the script, from ``set:NAME=VALUE``.

    A VALUE that is no literal is a string.
    """
    try:
        value = ast.literal_eval(change.value)
    except (ValueError, SyntaxError, TypeError):  # TypeError: of {[]: 1}, which cannot be built
        value = change.value
    return {change.key.removeprefix("set:"): value}


def apply(change: WhatIf, chip: Description, program: Callable[[dict[str, object]], Program]) -> Prediction:
    """Returns the prediction with a change. ``program(values)`` records the script with other values of its names."""
    if change.key.startswith("set:"):
        return predict(program(setting(change)), chip)
    own = program({})
    if change.key == "graph":
        return predict(own, chip, in_graph=True)
    if change.key == "devices":
        return predict(own, chip, devices=int(change.value))
    if change.key == "dtype":
        return predict(narrowed(own, getattr(torch, change.value)), chip)
    return predict(own, changed_chip(change, chip))


def _times(quantity: Quantity, factor: float) -> Quantity:
    """Returns a multiple of a quantity, whose source then is "assumed"."""
    return replace(quantity, value=quantity.value * factor, source="assumed", note=f"what if: times {factor:g}")


def changed_chip(change: WhatIf, chip: Description) -> Description:
    """Returns the chip with a change of its numbers, and without validations, because no such chip was measured."""
    factor = float(change.value)
    chip = replace(chip, name=f"{chip.name}, {change.text}", validations=())
    if change.key == "bandwidth":
        return replace(chip, memory_bandwidth=_times(chip.memory_bandwidth, factor))
    if change.key == "memory":
        return replace(chip, memory_size=_times(chip.memory_size, factor))
    if change.key == "launch":
        host, device, graph = (
            _times(item, factor) for item in (chip.launch_host, chip.launch_device, chip.launch_graph)
        )
        return replace(chip, launch_host=host, launch_device=device, launch_graph=graph)
    return replace(chip, rates={key: _times(rate, factor) for key, rate in chip.rates.items()})


def narrowed(program: Program, dtype: torch.dtype) -> Program:
    """Returns the program with another floating-point dtype. FLOP stay, and bytes scale with the width of the dtype.

    The peak, kept and parameter bytes scale by the factor of the last floating-point call, an approximation that is
    exact for programs of one dtype.
    """
    name = str(dtype).removeprefix("torch.")
    calls = []
    share = 1.0
    for call in program.calls:
        old = getattr(torch, call.work.dtype, None)
        if isinstance(old, torch.dtype) and old.is_floating_point:
            factor = dtype.itemsize / old.itemsize
            share = factor
            call = replace(call, work=replace(call.work, dtype=name, size=int(call.work.size * factor)))
        calls.append(call)
    return replace(
        program,
        calls=calls,
        peak=int(program.peak * share),
        kept=int(program.kept * share),
        parameters=int(program.parameters * share),
    )
