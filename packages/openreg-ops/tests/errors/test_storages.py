# SPDX-License-Identifier: BSD-3-Clause
"""A call on a tensor whose storage was freed or shrunk, as FSDP does with parameters, is refused.

Each way to an operand is tried; the sweep over all operators is the check `storages` of the conformance kit.
"""

from __future__ import annotations

import pytest
import torch

DEVICE = "openreg"

WAYS = {
    "a structured operator": lambda x: x + 1,
    "an operator with a description": torch.nn.functional.hardswish,
    "a reduction": lambda x: x.sum(),
    "in place": lambda x: x.mul_(2),
    "a fill": lambda x: x.fill_(1),
    "random numbers": lambda x: x.uniform_(),
    "random integers": lambda x: x.random_(),
    "out=": lambda x: torch.add(torch.ones(4, 4, device=DEVICE), 1, out=x),
    "a list": lambda x: torch._foreach_add([x, x], 1),
    "a list of parts": lambda x: torch.cat([x, x]),
    "a fused optimizer": lambda x: torch._fused_sgd_(
        [x],
        [x],
        [],
        weight_decay=0.0,
        momentum=0.0,
        lr=0.1,
        dampening=0.0,
        nesterov=False,
        maximize=False,
        is_first_step=True,
    ),
    "a kernel on addresses": lambda x: torch.nn.functional.embedding(
        torch.zeros(1, dtype=torch.int64, device=DEVICE), x
    ),
    "a view": lambda x: x[1:].exp(),
    "a copy to the host": lambda x: x.cpu(),
    "a copy from the host": lambda x: x.copy_(torch.ones(4, 4)),
    "a copy to another device": lambda x: x.to("openreg:1"),
    "a copy on the device": lambda x: x.clone(),
    "a copy that converts": lambda x: x.double(),
    "one element": lambda x: x[3, 3].item(),
    "printing": lambda x: repr(x),
    "a comparison that waits": lambda x: x.equal(x.detach()),
    "a result of unknown size": lambda x: x.nonzero(),
    "a quantity of LAPACK": lambda x: torch.linalg.inv(x),
}


@pytest.mark.parametrize("nbytes", [0, 48], ids=["freed", "shrunk"])
@pytest.mark.parametrize("use", WAYS.values(), ids=WAYS)
def test_a_tensor_beyond_its_storage_is_refused_by_the_call(use, nbytes):
    x = torch.ones(4, 4, device=DEVICE)
    torch.openreg.synchronize()
    x.untyped_storage().resize_(nbytes)
    with pytest.raises(RuntimeError, match=r"storage"):
        use(x)
    torch.openreg.synchronize()  # raises if the device was lost


def test_the_message_names_operator_tensor_storage_and_the_way_out():
    x = torch.ones(4, 4, device=DEVICE)
    x.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError) as caught:
        x.exp()
    for part in ("aten::exp", "[4, 4]", "float", "openreg:0", "0 bytes", "untyped_storage().resize_()"):
        assert part in str(caught.value)


def test_the_tensor_works_again_with_its_storage():
    x = torch.ones(4, 4, device=DEVICE)
    x.untyped_storage().resize_(0)
    x.untyped_storage().resize_(64)
    assert x.fill_(2).sum().item() == 32


def test_views_inside_of_what_is_left_work():
    x = torch.arange(16.0, device=DEVICE).view(4, 4)
    row, none = x[:1], x[2:2]
    x.untyped_storage().resize_(16)
    assert row.sum().item() == 6
    assert none.sum().item() == 0


def test_a_graph_replays_on_the_memory_that_it_captured():
    """As on CUDA: the memory of a capture is the graph's, whatever becomes of the storage."""
    x = torch.ones(4, 4, device=DEVICE)
    graph = torch.openreg.Graph()
    with torch.openreg.graph(graph):
        y = x + 1
    x.untyped_storage().resize_(0)
    graph.replay()  # openreg-sanitizer: ignore[graph-input]
    torch.openreg.synchronize()
    assert y.shape == (4, 4)
