# SPDX-License-Identifier: BSD-3-Clause
"""Arguments for every unstructured operator with an out= overload, by name of the functional overload."""

import torch


def unstructured_samples():
    torch.manual_seed(1)
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    numbers = torch.randperm(12).float().view(3, 4)  # no two are equal, so that the place of an extremum is unique
    sparse = torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
    holes = x.masked_fill(x > 1, float("nan"))
    edges = torch.tensor([-1.0, 0.0, 0.5, 2.0])
    return indexing(x, sparse) | {
        "_logcumsumexp": [(x, 1), (torch.tensor(2.0), 0)],
        "bucketize.Tensor": [(x, edges)],
        "floor_divide": [(x, y), (torch.tensor([-7, 7]), torch.tensor([2, -2])), (x, torch.tensor(2))],
        "frexp.Tensor": [(x,)],
        "addr": [(torch.randn(3, 4), torch.randn(3), torch.randn(4))],
        "histc": [(x, 5, -1, 1), (x, 4)],
        "histogram.bin_ct": [(x, 3)],
        "histogram.bins_tensor": [(x, edges)],
        "isin.Scalar_Tensor": [(2, torch.tensor([1, 2])), (5.0, x)],
        "kthvalue": [(numbers, 2), (numbers, 1, 0, True)],
        "logit": [(x.sigmoid(),), (x, 0.1)],
        "max": [(x,), (torch.tensor([3, 1]),)],
        "median.dim": [(numbers, 1), (numbers, 0, True)],
        "min": [(x,), (torch.tensor([True, False]),)],
        "mode": [(torch.tensor([[1, 2, 2], [3, 3, 1]]),), (torch.tensor([[1.0], [1.0]]), 0, True)],
        "nanmedian.dim": [(numbers.masked_fill(numbers > 8, float("nan")), 1)],
        "nansum": [(holes,), (holes, [0], True), (torch.tensor([1, 2]),)],
        "searchsorted.Scalar": [(edges, 0.25)],
        "searchsorted.Tensor": [(edges, x), (x.sort(1).values, y)],
        "std.correction": [(x,), (x, [1])],
        "var.correction": [(x,), (x, [0]), (torch.complex(x, y),)],
    }


def indexing(x, sparse):
    return {
        "index_select": [(x, 1, torch.tensor([3, 0, 3])), (x, 0, torch.tensor([1], dtype=torch.int32))],
        "masked_select": [(x, x > 0), (x, x[:, :1] > 0), (x[0], x > 9)],
        "nonzero": [(sparse,), (torch.tensor(3),), (torch.zeros(3, 2, dtype=torch.bool),)],
        "nonzero_static": [(sparse,)],
        "take": [(x, torch.tensor([[0, 11], [-1, 5]]))],
    }


DESCRIBED_OPTIONS = {"nonzero_static": {"size": 4, "fill_value": -7}}
