# SPDX-License-Identifier: BSD-3-Clause
"""Runs OpInfo's samples of operators with kernels of this package. Prints a line per operator and dtype as JSON.

test_raw_kernels.py runs it in processes of its own, because the kernels are chosen when the package is loaded.
"""

import json
import sys
import traceback

import torch
from parity import check
from torch.testing._internal.common_methods_invocations import op_db

import openreg_ops  # noqa: F401

NAMES = ["abs", "sum", "mm", "softmax", "nn.functional.embedding"]
DTYPES = [
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.uint8,
    torch.int32,
    torch.int64,
    torch.bool,
    torch.complex64,
]
# Summed in another order, and over up to a few hundred terms.
TOLERANCES = {torch.bfloat16: {"rtol": 2e-2, "atol": 2e-2}, torch.float16: {"rtol": 2e-3, "atol": 2e-3}}


def failures(info, dtype):
    """Samples that were run, and what went wrong in each that failed."""
    requires_grad = dtype in info.supported_backward_dtypes("cpu")
    samples = list(info.sample_inputs("cpu", dtype, requires_grad=requires_grad))
    problems = []
    for number, sample in enumerate(samples):
        try:
            check(info.op, sample.input, *sample.args, strides=False, tolerance=TOLERANCES.get(dtype), **sample.kwargs)
        except Exception:
            problems.append(f"sample {number} {sample}: {traceback.format_exc(limit=-2)}")
    return len(samples), problems


def main():
    with torch.openreg.fallback_mode(sys.argv[1]):
        for info in op_db:
            if info.name not in NAMES:
                continue
            for dtype in DTYPES:
                if dtype in info.supported_dtypes("cpu"):
                    count, problems = failures(info, dtype)
                    name = f"{info.name}{'.' * bool(info.variant_test_name)}{info.variant_test_name}"
                    print(json.dumps([name, str(dtype), count, problems]))


if __name__ == "__main__":
    main()
