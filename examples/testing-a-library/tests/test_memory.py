# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from chunkwise import predict
from torch import nn

WIDTH = 1 << 14  # a row of 64 KiB: 64 MiB hold 1024 of them

EVERY_ATTEMPT = "alloc:1,alloc:2,alloc:3,alloc:4"  # the allocator gives back what it keeps, and tries again


class Rows(nn.Module):
    """Takes the first column, and notes the sizes of the chunks."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def forward(self, x):
        self.seen.append(len(x))
        return x[:, :1] * 2


def test_a_chunk_that_does_not_fit_is_halved(openreg):
    seen = []

    data = torch.randn(2000, WIDTH)
    answers = predict(Rows(seen), data, device=torch.device("openreg"), chunk=2000)
    torch.testing.assert_close(answers, data[:, :1] * 2)
    assert max(seen) < 1024


def test_a_single_row_that_does_not_fit_is_an_error(openreg):
    with pytest.raises(torch.OutOfMemoryError, match="openreg:0"):
        predict(nn.Identity(), torch.empty(1, 1 << 25), device=torch.device("openreg"), chunk=4)


def test_memory_that_runs_out_once_is_survived(openreg):
    openreg.empty_cache()  # a fault hits the device's own allocation, not memory that the allocator keeps
    seen = []
    with openreg.inject_faults(EVERY_ATTEMPT):
        answers = predict(Rows(seen), torch.ones(4, WIDTH), device=torch.device("openreg"), chunk=4)
    assert answers.sum() == 8
    assert seen == [2, 2]


def test_nothing_is_left_behind(openreg):
    before = torch.accelerator.memory_allocated()
    predict(nn.Identity(), torch.ones(4, WIDTH), device=torch.device("openreg"))
    assert torch.accelerator.memory_allocated() == before
