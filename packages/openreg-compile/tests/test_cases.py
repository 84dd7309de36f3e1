# SPDX-License-Identifier: BSD-3-Clause
"""Compiled functions and models give the results of the uncompiled ones, for each kind of operation and in training."""

import copy
import itertools

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


def same(one, other, name):
    near = {"rtol": 2e-5, "atol": 2e-5}
    torch.testing.assert_close(one, other, **near, check_stride=True, msg=lambda text: f"{name}: {text}")


# Functions that are called by one. The loops of a graph become few kernels, and each kernel costs a call of the C++
# compiler; a convolution decides about the images of a whole graph, and so stands with nothing else.
TOGETHER = {
    "loops": (
        *("pointwise", "broadcasting", "views", "a_view_of_the_input", "joining", "padding", "resizing", "gathering"),
        *("whole_numbers", "mixed_dtypes", "sizes_from_data", "new_tensors", "many_outputs", "lists", "embedding"),
    ),
    "rows": (
        *("reductions", "welford", "variances", "positions", "softmaxes", "scans", "strides_and_offsets", "losses"),
        "pooling_turned",
    ),
    "operators": (
        *("scattering", "sums_at_indices", "linear", "products", "attention", "sorting", "several_kernels"),
        "complex_numbers",
    ),
    "any size": ("positions_of_any_size", "any_size"),
    "written to": ("mutation", "mutated_view"),
    "branches and loops": ("numbers_on_the_host", "branches", "loops"),
    "convolution": ("convolution",),
    "nothing": ("nothing",),
    "a break": ("a_break",),
}


def check(*names):
    """Compiles a function that calls these, and compares what each gives, and what it writes to."""
    functions, every_set, options = zip(*(CASES[name] for name in names), strict=True)
    assert all(one == options[0] for one in options)

    def together(*inputs):
        return [function(*given) for function, given in zip(functions, inputs, strict=True)]

    torch._dynamo.reset()  # or other functions, whose code is this one, would be other sizes of it
    compiled = torch.compile(together, **options[0])
    for number in range(max(map(len, every_set))):
        inputs = [sets[number % len(sets)] for sets in every_set]
        ours, theirs = moved(inputs), moved(inputs)
        results = zip(names, compiled(*ours), together(*theirs), ours, theirs, strict=True)
        for name, result, expected, given, written in results:
            same(result, expected, name)
            same(given, written, f"what is given to {name}")


def test_each_case_is_called_once():
    assert sorted(itertools.chain(*TOGETHER.values())) == sorted(CASES)


@pytest.mark.parametrize("kind", TOGETHER)
def test_compiled_functions_give_what_they_give(kind):
    check(*TOGETHER[kind])


@pytest.mark.covers("registration.Scheduling and PythonWrapperCodegen")
@pytest.mark.endurance  # each in a graph of its own
@pytest.mark.parametrize("name", CASES)
def test_a_compiled_function_gives_what_it_gives(name):
    check(name)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("perceptron", marks=pytest.mark.endurance),  # test_launches.py captures steps of one
        "transformer",
        "convolutions",
        "recurrent",
    ],
)
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
            same(ours.grad, theirs.grad, "gradients")
            for parameter in (ours, theirs):
                with torch.no_grad():
                    parameter -= 0.1 * parameter.grad
        same(list(model.buffers()), list(plain.buffers()), "buffers")
