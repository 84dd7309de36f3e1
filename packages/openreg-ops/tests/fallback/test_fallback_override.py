# SPDX-License-Identifier: BSD-3-Clause
"""Operators can be sent to the CPU although the device has kernels for them."""

import pytest
import torch
from parity import DEVICE


def test_operators_are_sent_to_the_cpu_and_back():
    with torch.openreg.fallback_mode("error"):
        x = torch.arange(6.0, device=DEVICE)
        assert x.add(1).sum().item() == 21
        with torch.openreg.fallback_operators("aten::add.Tensor"), pytest.raises(NotImplementedError, match="add"):
            x.add(1)
        assert x.add(1).sum().item() == 21
    with torch.openreg.fallback_operators("aten::add.Tensor"):
        assert x.add(1).sum().item() == 21
    assert torch.openreg.fallback_stats()["aten::add.Tensor"].calls == 1


def test_only_operators_are_sent_to_the_cpu():
    names = "aten::add.Tensor", "aten::histk"
    with pytest.raises(ValueError, match="'aten::histk'"), torch.openreg.fallback_operators(*names):
        pass
    with torch.openreg.fallback_mode("error"):
        assert torch.ones(2, device=DEVICE).add(1).sum().item() == 4
