# SPDX-License-Identifier: BSD-3-Clause
"""Arguments for every operator of the described table that has an out= form, by the name of its functional form."""

import torch


def described_samples():
    torch.manual_seed(1)
    x = torch.randn(3, 4)
    return {
        "index_select": [(x, 1, torch.tensor([3, 0, 3])), (x, 0, torch.tensor([1], dtype=torch.int32))],
        "take": [(x, torch.tensor([[0, 11], [-1, 5]]))],
    }
