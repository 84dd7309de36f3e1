# SPDX-License-Identifier: BSD-3-Clause
"""What the device does with tensors that are not dense ones, operator by operator, written as a page.

usage: python packages/openreg-ops/tools/layouts.py    writes packages/openreg-ops/docs/layouts.md

A family of tensors has dispatch keys of its own, for the CPU and for a device: KEYS. The page says of each which of the
CPU's operators the device has. Of families in MEASURED, calls of each operator are made on the device, on a tensor of
each layout: a module of the tests has them (its KINDS, sample(), registered() and calls_of()).
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "layouts.md"
DEVICE = "openreg"

# Family -> (key of the CPU, key of the device).
KEYS = {
    "sparse, COO": ("SparseCPU", "SparsePrivateUse1"),
    "sparse, compressed": ("SparseCsrCPU", "SparseCsrPrivateUse1"),
    "nested, strided layout": ("NestedTensorCPU", "NestedTensorPrivateUse1"),
    "quantized": ("QuantizedCPU", "QuantizedPrivateUse1"),
}


@dataclass(frozen=True)
class Measured:
    """A family whose calls stand in a module of the tests; `layouts` is what kinds of its samples begin with."""

    title: str
    samples: str
    keys: tuple[str, ...]
    layouts: tuple[str, ...]


MEASURED = (
    Measured("Sparse tensors", "sparse_samples", ("SparseCPU", "SparseCsrCPU"), ("coo", "csr", "csc", "bsr", "bsc")),
)

HEAD = """# What the device does with sparse, nested and quantized tensors

Made by `tools/layouts.py`, on the device, with PyTorch {version}; a test compares it.

| family | the CPU's key | the device's key | operators of the CPU | of them on the device | not there |
|---|---|---|---|---|---|
"""
LEGEND = """
## {title}

An operator in all of its forms, on a tensor of each layout. **yes**: it is launched, and the host goes on. **waits**:
the host waits, as the size of the result, or whether there is one, depends on data; or it would wait for a GPU, because
PyTorch copies a few numbers to the device. **some wait**: it does so for some operands or arguments. Where nothing
stands, PyTorch has no such operator for the layout, on the CPU and here.

| operator | {layouts} |
|---|{rules}|
"""


def registered(key: str) -> set[str]:
    """Operators that have a kernel under a dispatch key, in PyTorch's own namespace."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key(key)  # type: ignore[attr-defined, unused-ignore]
    return {name.removeprefix("aten::") for name in names if name.startswith("aten::")}


def coverage() -> str:
    """A row per family."""
    text = ""
    for family, (theirs, ours) in KEYS.items():
        there, here = registered(theirs), registered(ours)
        missing = ", ".join(f"`{name}`" for name in sorted(there - here))
        text += f"| {family} | `{theirs}` | `{ours}` | {len(there)} | {len(there & here)} | {missing} |\n"
    return text


def behavior(call: Callable[[], Any]) -> str | None:
    """What a call that was made before does: launches or waits; None where it is refused."""
    try:
        for _ in range(2):  # the first one of its kind may be synchronous
            call()
    except (RuntimeError, IndexError, NotImplementedError, ValueError):
        torch.openreg.reset_device()
        return None
    torch.openreg.set_sync_debug_mode("error")
    try:
        call()
    except RuntimeError as error:
        if "waits" not in str(error):
            raise
        return "waits"
    finally:
        torch.openreg.set_sync_debug_mode("default")
    return "launches"


def cell(found: set[str | None]) -> str:
    """The word for what the calls did."""
    done = found - {None}
    if not done:
        return ""
    return {("launches",): "yes", ("waits",): "waits"}.get(tuple(sorted(filter(None, done))), "some wait")


def made(samples: Any, name: str, tensor: torch.Tensor) -> list[Callable[[], Any]]:
    """The calls of one form; none where their arguments cannot be computed on such a tensor."""
    try:
        return list(samples.calls_of(name, tensor))
    except (RuntimeError, IndexError, NotImplementedError):
        return []


def measure(family: Measured) -> dict[str, list[str]]:
    """For each operator, what it does on each layout."""
    samples = importlib.import_module(family.samples)
    forms: dict[str, set[str]] = {}
    for name in {name for key in family.keys for name in samples.registered(key)} - samples.NOT_OF_A_DEVICE:
        forms.setdefault(name.partition(".")[0].rstrip("_") or name, set()).add(name)
    rows = {}
    for operator in sorted(forms):
        rows[operator] = [cell(outcomes(samples, forms[operator], layout)) for layout in family.layouts]
    return rows


def outcomes(samples: Any, names: Iterable[str], layout: str) -> set[str | None]:
    """Of all calls of these forms on samples of one layout."""
    found: set[str | None] = set()
    key = samples.cpu_key_of(layout)
    for kind in samples.KINDS:
        if not kind.startswith(layout):
            continue
        for name in sorted(set(names) & registered(key)):
            for call in made(samples, name, samples.sample(kind).to(DEVICE)):
                found.add(behavior(call))
    return found


def render() -> str:
    """The whole page."""
    text = HEAD.format(version=torch.__version__.partition("+")[0]) + coverage()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for family in MEASURED:
            text += LEGEND.format(
                title=family.title,
                layouts=" | ".join(map(str.upper, family.layouts)),
                rules="---|" * len(family.layouts),
            ).replace("||\n", "|\n")
            for operator, cells in measure(family).items():
                text += f"| `{operator}` | {' | '.join(cells)} |\n".replace("|  |", "| |").replace("|  |", "| |")
    return text


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests" / "layouts"))
    import openreg_ops  # noqa: F401  (registers the operators)

    PAGE.write_text(render(), "utf-8")
