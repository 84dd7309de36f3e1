# SPDX-License-Identifier: BSD-3-Clause
"""Writes the page about mistakes that cause an asynchronous error.

usage: python packages/openreg-ops/tools/async_errors.py    writes packages/openreg-ops/docs/async_errors.md

The calls stand in tests/errors/failure_cases.py; what they do is measured here, on the CPU and on the device.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "async_errors.md"
HEAD = """# Asynchronous errors

A launch returns before its kernel runs. Where the kernel then finds something wrong with the data, the device stops,
as a GPU does: later work is skipped, and whoever waits gets `torch.AcceleratorError` with the kernel's name, until
`torch.openreg.reset_device()`. `OPENREG_LAUNCH_BLOCKING=1` raises at the call.

These mistakes, and no others, are reported so; the CPU raises at the call, and so does the device wherever CUDA would.
Each row was run on both. Made by `tools/async_errors.py` from `tests/errors/failure_cases.py`, which a test compares.

| call | on the CPU | the kernel that stops the device | on CUDA |
|---|---|---|---|
"""


def outcome_on_cpu(call: str, evaluate: Any) -> str:
    """The type of the exception."""
    try:
        evaluate(call, "cpu")
    except Exception as error:
        return type(error).__name__
    return "no error"


def outcome_on_device(call: str, evaluate: Any) -> str:
    """The name of the kernel that failed; its device is usable again afterwards."""
    try:
        evaluate(call, "openreg")
        torch.openreg.synchronize()
    except torch.AcceleratorError as error:
        torch.openreg.reset_device()
        return str(error).partition("kernel '")[2].partition("'")[0]
    return "none"


def render(cases: Sequence[Any]) -> str:
    """The whole page."""
    from failure_cases import evaluate

    rows = (
        f"| `{case.call}` | {outcome_on_cpu(case.call, evaluate)} | `{outcome_on_device(case.call, evaluate)}` "
        f"| {case.on_cuda} |\n"
        for case in cases
    )
    return HEAD + "".join(rows)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests" / "errors"))
    from failure_cases import LATER

    import openreg_ops  # noqa: F401  (registers the operators)

    PAGE.write_text(render(LATER), "utf-8")
