# SPDX-License-Identifier: BSD-3-Clause
"""Layouts that the device does not store: refused by name, and the device goes on."""

import pytest
import torch
from parity import DEVICE


@pytest.mark.parametrize(
    "operation",
    [
        lambda: torch.eye(2).to_sparse().to(DEVICE),
        lambda: torch.eye(2).to_sparse_csr().to(DEVICE).to_dense(),
        lambda: torch.eye(2, device=DEVICE).to_sparse(),
        lambda: torch.sparse_coo_tensor([[0], [1]], [1.0], device=DEVICE),
        lambda: torch.empty(2, 2, layout=torch.sparse_csr, device=DEVICE),
        lambda: torch.zeros(2, 2, layout=torch.sparse_coo, device=DEVICE),
    ],
)
@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_tensors(operation):
    with pytest.raises(NotImplementedError, match=r"openreg .*to_dense"):
        operation()


def test_the_device_goes_on():
    assert (torch.ones(2, device=DEVICE) + 1).sum().item() == 4
