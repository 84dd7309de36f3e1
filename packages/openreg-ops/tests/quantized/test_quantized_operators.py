# SPDX-License-Identifier: BSD-3-Clause
"""Every operator that the CPU has for quantized tensors gives its results, in the first call and later ones."""

import re

import pytest
import quantized_samples as samples
import torch
from parity import DEVICE

pytestmark = [
    pytest.mark.no_fallback,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.mark.covers("registration.kernels of torch.ops.quantized")
@pytest.mark.parametrize("name", samples.SAMPLES)
def test_an_operator_gives_what_the_cpu_gives(name):
    for sample in samples.SAMPLES[name]:
        expected = samples.call(name, sample, "cpu")
        for _ in range(3):
            samples.assert_equal(samples.call(name, sample, DEVICE), expected)


def has_kernel(name, key):
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, key)


NAMES = torch._C._dispatch_get_all_op_names()
LIBRARIES = ("aten::", "quantized::", "sparse::")  # torch.ops._quantized has copies of some for phones


@pytest.mark.covers("registration.kernels of QuantizedPrivateUse1")
def test_the_device_has_what_the_cpu_has():
    mine = {name for name in NAMES if has_kernel(name, "QuantizedPrivateUse1")}
    assert {name for name in NAMES if has_kernel(name, "QuantizedCPU") and name.startswith(LIBRARIES)} <= mine
    dense = {name for name in NAMES if name.startswith(LIBRARIES[1:]) and has_kernel(name, "CPU")}
    without = {"sparse::qlinear_relu_dynamic"}  # no engine of PyTorch's has it
    assert {name for name in dense if not has_kernel(name, "PrivateUse1")} == without


# Of test_quantized.py: what makes and moves tensors, and their parameters. Of test_quantized_launches.py: packing.
TESTED_ELSEWHERE = re.compile(
    r"aten::(_?copy|_empty|_to_copy|_reshape_alias|as_strided|clone|dequantize|empty|equal|int_repr|q_|qscheme|"
    r"record_stream|resize_|set_|squeeze|unfold|unsqueeze|view)|quantized::\w*prepack|sparse::qlinear_prepack"
)


def test_every_operator_has_a_sample():
    declared = {name for name in NAMES if has_kernel(name, "QuantizedPrivateUse1")}
    missing = declared - set(samples.SAMPLES)
    assert {name for name in missing if not TESTED_ELSEWHERE.match(name)} == set()
