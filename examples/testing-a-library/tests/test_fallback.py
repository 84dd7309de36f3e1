# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch


def test_a_fallback_is_noticed(openreg):
    x = torch.arange(3.0, device="openreg")
    with openreg.fallback_operators("aten::flip"), pytest.raises(RuntimeError, match="aten::flip"):
        x.flip(0)


def test_fallbacks_are_counted(openreg):
    openreg.reset_fallback_stats()
    with openreg.fallback_mode("allow"), openreg.fallback_operators("aten::flip"):
        torch.arange(3.0, device="openreg").flip(0)
    assert openreg.fallback_stats()["aten::flip"].calls == 1
