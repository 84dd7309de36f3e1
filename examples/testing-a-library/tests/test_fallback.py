# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch


@pytest.mark.no_fallback
@pytest.mark.skipif(not hasattr(torch, "openreg"), reason="openreg is not installed, or switched off")
def test_a_fallback_is_noticed():
    x = torch.arange(3.0, device="openreg")
    with torch.openreg.fallback_operators("aten::flip"), pytest.raises(RuntimeError, match="aten::flip"):
        x.flip(0)
