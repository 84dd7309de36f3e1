# SPDX-License-Identifier: BSD-3-Clause
"""Operators without a kernel for a sparse layout are refused as on the CPU, with the name of the operator."""

import pytest
import torch
from parity import DEVICE

LAYOUTS = {
    "coo": torch.Tensor.to_sparse,
    "csr": torch.Tensor.to_sparse_csr,
    "csc": torch.Tensor.to_sparse_csc,
    "bsr": lambda x: x.to_sparse_bsr((2, 2)),
    "bsc": lambda x: x.to_sparse_bsc((2, 2)),
}
OPERATIONS = {
    "exp": torch.exp,
    "sort": torch.sort,
    "clamp": lambda x: x.clamp(0),
    "cumsum": lambda x: x.cumsum(0),
    "flip": lambda x: x.flip(0),
    "view": lambda x: x.view(-1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_tensors(layout, operation):
    with pytest.raises(RuntimeError) as of_the_cpu:
        OPERATIONS[operation](LAYOUTS[layout](torch.eye(4)))
    with pytest.raises(RuntimeError) as ours:
        OPERATIONS[operation](LAYOUTS[layout](torch.eye(4, device=DEVICE)))
    assert ours.type is of_the_cpu.type
    if ours.type is NotImplementedError:
        assert ours.match(rf"aten::{operation}.* openreg .*to_dense")
    assert (torch.ones(2, device=DEVICE) + 1).sum().item() == 4
