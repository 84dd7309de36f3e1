# SPDX-License-Identifier: BSD-3-Clause
"""A test file with the structure of PyTorch's own, whose tests are instantiated for each device type."""

import os
import unittest
import warnings

import torch
from torch.testing._internal.common_device_type import dtypes, instantiate_device_type_tests, onlyCPU, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase, run_tests

SOME = [op for op in op_db if op.name in ("abs", "erf", "exp") and not op.variant_test_name]


class TestShapes(TestCase):
    def test_flip(self, device):
        x = torch.arange(6, device=device).view(2, 3)
        assert x.flip(0)[0].tolist() == [3, 4, 5]

    @dtypes(torch.float32, torch.int64)
    def test_sum(self, device, dtype):
        assert torch.ones(3, device=device, dtype=dtype).sum().item() == 3

    @ops(SOME, allowed_dtypes=(torch.float32,))
    def test_operator(self, device, dtype, op):
        for sample in op.sample_inputs(device, dtype):
            assert op(sample.input, *sample.args).device.type == torch.device(device).type

    def test_counts_warnings(self, device):
        with warnings.catch_warnings(record=True) as found:
            warnings.warn("of this test", UserWarning, stacklevel=1)
        assert len(found) == 1
        assert not torch.is_warn_always_enabled()

    def test_fails(self, device):
        assert torch.ones(1, device=device).item() == 2, "one is not two"

    def test_crashes(self, device):
        os.abort()

    @onlyCPU
    def test_of_the_cpu(self, device):
        raise AssertionError("not run elsewhere")

    @unittest.skip("left out by its author")
    def test_is_left_out(self, device):
        raise AssertionError("not run")

    @unittest.expectedFailure
    def test_is_known_to_fail(self, device):
        raise AssertionError("as expected")


class TestOfNoDevice(TestCase):
    def test_alone(self):
        raise AssertionError("not run: it is made for no device")


instantiate_device_type_tests(TestShapes, globals())

if __name__ == "__main__":
    run_tests()
