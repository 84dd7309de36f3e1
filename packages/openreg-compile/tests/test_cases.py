# SPDX-License-Identifier: BSD-3-Clause
"""What compiled functions and models give, against the same uncompiled: each kind of operation, and training."""

import copy

import pytest
import torch
from cases import CASES, MODELS
from torch.utils import _pytree as pytree

DEVICE = "openreg"

pytestmark = pytest.mark.filterwarnings("ignore:::torch")  # of what PyTorch itself calls, and of slow code


def moved(value):
    """Copies on the device, of the same strides and offset; numbers on the host stay there."""

    def move(x):
        if x.dim() == 0:
            return x.clone()
        whole = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage()).to(DEVICE)
        return whole.as_strided(x.size(), x.stride(), x.storage_offset())

    return pytree.tree_map_only(torch.Tensor, move, value)


def same(one, other):
    torch.testing.assert_close(one, other, rtol=2e-5, atol=2e-5, check_stride=True)


@pytest.mark.parametrize("name", CASES)
def test_a_compiled_function_gives_what_it_gives(name):
    function, sets, options = CASES[name]
    compiled = torch.compile(function, **options)
    for inputs in sets:
        ours, theirs = moved(inputs), moved(inputs)
        same(compiled(*ours), function(*theirs))
        same(ours, theirs)  # what it writes to


@pytest.mark.parametrize("name", MODELS)
def test_a_compiled_model_trains(name):
    make, sizes = MODELS[name]
    torch.manual_seed(0)
    plain = make().to(DEVICE)
    model = copy.deepcopy(plain)
    compiled = torch.compile(model, fullgraph=True)
    for step in range(2):
        x = torch.randn(sizes, generator=torch.Generator().manual_seed(step)).to(DEVICE)
        for one in (plain, compiled):
            one(x).square().mean().backward()
        for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
            same(ours.grad, theirs.grad)
            for parameter in (ours, theirs):
                with torch.no_grad():
                    parameter -= 0.1 * parameter.grad
        same(list(model.buffers()), list(plain.buffers()))
