# SPDX-License-Identifier: BSD-3-Clause
"""Operators on quantised tensors: each that the CPU has, compared with it, the first time and later."""

import pytest
import quantized_samples as samples
import torch
from parity import DEVICE, is_busy

pytestmark = [
    pytest.mark.usefixtures("native"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_an_operator_gives_what_the_cpu_gives(name):
    for sample in samples.SAMPLES[name]:
        expected = samples.call(name, sample, "cpu")
        for _ in range(3):
            samples.assert_equal(samples.call(name, sample, DEVICE), expected)
