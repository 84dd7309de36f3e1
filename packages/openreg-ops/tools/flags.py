# SPDX-License-Identifier: BSD-3-Clause
"""The flags of PyTorch that hold from the launch, and those that kernels read when they run, written as a page.

usage: python packages/openreg-ops/tools/flags.py    writes packages/openreg-ops/docs/flags.md

The flags are those of the conformance kit (openreg-testing); what kernels read late is in tests/conformance.toml. The
tests hold both against every operator.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
PAGE = PACKAGE / "docs" / "flags.md"

HEAD = """# Flags of PyTorch, and when they count

Made by tools/flags.py from tests/conformance.toml; do not edit.

Of the launch: these count as they are when an operator is called, whatever becomes of them before its kernel runs.

"""
MIDDLE = """
Of the kernel: PyTorch's own kernels read these when they run, for the operators below, and there is no hook to tell
them otherwise. Wait for the device (`torch.openreg.synchronize()`) before you change one of them.

| flag | operators | why | what you see |
|---|---|---|---|
"""
TAIL = """
So is this one, for operators that PyTorch's table does not have, so that no test finds them by itself.

| flag | operators | why | what you see |
|---|---|---|---|
"""
ENGINE = (
    "`torch.backends.quantized.engine`",
    "those of quantized tensors and of `torch.ops.quantized`",
    "kernels choose between libraries when they run, and weights are packed for one of them",
    "last bits; where the other library does not have the operator, an error of the kernel, which stops the device",
)


def render() -> str:
    """The page."""
    from openreg_testing.conformance import manifest
    from openreg_testing.conformance.operators import flags

    readings = manifest.read(PACKAGE / "tests" / "conformance.toml").flag_readings
    late = {item.flag for item in readings}
    text = HEAD + "".join(f"- `{flag.name}`\n" for flag in flags.FLAGS if flag.name not in late) + MIDDLE
    for item in readings:
        operators = ", ".join(f"`{name}`" for name in item.operators)
        text += f"| `{item.flag}` | {operators} | {item.reason} | {item.effect} |\n"
    return text + TAIL + f"| {' | '.join(ENGINE)} |\n"


if __name__ == "__main__":
    PAGE.write_text(render(), "utf-8")
