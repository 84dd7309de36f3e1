# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from chunkwise import default_device, predict
from torch import nn

pytestmark = pytest.mark.skipif(default_device().type == "cpu", reason="the memory of a CPU has no end to test")

WIDTH = 1 << 14  # a row of 64 KiB: 64 MiB hold 1024 of them
SMALL = pytest.mark.device_settings(OPENREG_DEVICE_MEMORY="64MiB")


class Rows(nn.Module):
    """Takes the first column, and notes the sizes of the chunks."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def forward(self, x):
        self.seen.append(len(x))
        return x[:, :1] * 2


@SMALL
def test_a_chunk_that_does_not_fit_is_halved(device):
    seen = []
    data = torch.randn(2000, WIDTH)
    answers = predict(Rows(seen), data, device=device, chunk=2000)
    torch.testing.assert_close(answers, data[:, :1] * 2)
    assert max(seen) < 1024


@SMALL
def test_a_single_row_that_does_not_fit_is_an_error(device):
    with pytest.raises(torch.OutOfMemoryError, match=str(device)):
        predict(nn.Identity(), torch.empty(1, 1 << 25), device=device, chunk=4)


# The allocator gives back what it keeps and tries again, three times.
@pytest.mark.faults("alloc:1", "alloc:2", "alloc:3", "alloc:4")
def test_memory_that_runs_out_once_is_survived(device):
    seen = []
    answers = predict(Rows(seen), torch.ones(4, WIDTH), device=device, chunk=4)
    assert answers.sum() == 8
    assert seen == [2, 2]


@pytest.mark.check_leaks
def test_nothing_is_left_behind(device):
    predict(nn.Identity(), torch.ones(4, WIDTH), device=device)
