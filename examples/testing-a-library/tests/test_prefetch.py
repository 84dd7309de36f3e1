# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from chunkwise import prefetch


def doubled(batches, device):
    results = [batch * 2 for batch in batches(device)]
    return torch.stack(results).cpu()


@pytest.mark.schedules(seeds=20)
def test_batches_arrive_in_order_and_whole(device):
    data = torch.randn(8, 1000)
    result = doubled(lambda device: prefetch(data, device), device)
    torch.testing.assert_close(result, data * 2)
