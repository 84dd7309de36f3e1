# SPDX-License-Identifier: BSD-3-Clause
"""A table of forty operators, every tenth of which ends the process when it runs on the device; one hangs."""

import os
import time

from torch.testing._internal.common_dtype import floating_types
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

COUNT = 40
HANGS = 5


def samples(op_info, device, dtype, requires_grad, **kwargs):
    import torch

    yield SampleInput(torch.ones(3, dtype=dtype, device=device, requires_grad=requires_grad))


def operator(number):
    def call(x):
        if x.device.type != "cpu" and number % 10 == 0:
            os.abort()
        while x.device.type != "cpu" and number == HANGS:
            time.sleep(1)
        return x * number

    return call


TABLE = [
    OpInfo(
        f"operator_{number}",
        op=operator(number),
        dtypes=floating_types(),
        sample_inputs_func=samples,
        supports_out=False,
        method_variant=None,
        inplace_variant=None,
        operator_variant=None,
        inplace_operator_variant=None,
    )
    for number in range(COUNT)
]
