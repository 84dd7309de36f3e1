# SPDX-License-Identifier: BSD-3-Clause
"""A table of forty operators, of which every tenth ends the process when it runs on the device.

One hangs, and one leaves the device in an error that only a new process is free of, where there is no reset_device().
"""

import os
import time

import torch
from torch.testing._internal.common_dtype import floating_types
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

COUNT = 40
HANGS = 5
LOSES_THE_DEVICE = 7


def samples(op_info, device, dtype, requires_grad, **kwargs):
    yield SampleInput(torch.ones(3, dtype=dtype, device=device, requires_grad=requires_grad))


def operator(number):
    def call(x):
        if x.device.type != "cpu" and number % 10 == 0:
            os.abort()
        while x.device.type != "cpu" and number == HANGS:
            time.sleep(1)
        if x.device.type != "cpu" and number == LOSES_THE_DEVICE:
            return torch.zeros(1, device=x.device).index_select(0, torch.tensor([99], device=x.device))
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
RIGHT = TABLE[1:2]  # one that is right
LOSES_THE_DEVICE_AND_RIGHT = TABLE[LOSES_THE_DEVICE : LOSES_THE_DEVICE + 2]
