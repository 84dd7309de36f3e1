# SPDX-License-Identifier: BSD-3-Clause
"""The flags of PyTorch that hold from the launch, and those that kernels read when they run, written as a page.

usage: python packages/openreg-ops/tools/flags.py    writes packages/openreg-ops/docs/flags.md

The table is that of tests/conformance/flags.py, which the tests hold against every operator.
"""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
PAGE = PACKAGE / "docs" / "flags.md"

HEAD = """# Flags of PyTorch, and when they count

Made by tools/flags.py from tests/conformance/flags.py; do not edit.

Of the launch: these count as they are when an operator is called, whatever becomes of them before its kernel runs.

"""
MIDDLE = """
Of the kernel: PyTorch's own kernels read these when they run, for the operators below, and there is no hook to tell
them otherwise. Wait for the device (`torch.openreg.synchronize()`) before you change one of them.

| flag | operators | why | what you see |
|---|---|---|---|
"""


def render() -> str:
    """The page."""
    sys.path.insert(0, str(PACKAGE / "tests"))
    try:
        from conformance import flags
    finally:
        sys.path.pop(0)
    late = {item.flag.name for item in flags.READ_BY_KERNELS}
    text = HEAD + "".join(f"- `{flag.name}`\n" for flag in flags.FLAGS if flag.name not in late) + MIDDLE
    for item in flags.READ_BY_KERNELS:
        operators = ", ".join(f"`{name}`" for name in item.operators)
        text += f"| `{item.flag.name}` | {operators} | {item.reason} | {item.effect} |\n"
    return text


if __name__ == "__main__":
    PAGE.write_text(render(), "utf-8")
