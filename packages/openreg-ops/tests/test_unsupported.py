# SPDX-License-Identifier: BSD-3-Clause
"""Operators that a layout does not have: refused by name, and the device goes on."""

import pytest
import torch
from parity import DEVICE

LAYOUTS = {
    "coo": torch.Tensor.to_sparse,
    "csr": torch.Tensor.to_sparse_csr,
    "csc": torch.Tensor.to_sparse_csc,
    "bsr": lambda x: x.to_sparse_bsr((2, 2)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("operation", [torch.exp, torch.sort, lambda x: x.clamp(0), lambda x: x.cumsum(0)])
@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_tensors(layout, operation):
    with pytest.raises(NotImplementedError, match=r"aten::.* openreg .*to_dense"):
        operation(LAYOUTS[layout](torch.eye(4, device=DEVICE)))
    assert (torch.ones(2, device=DEVICE) + 1).sum().item() == 4
