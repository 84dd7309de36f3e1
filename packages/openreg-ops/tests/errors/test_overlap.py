# SPDX-License-Identifier: BSD-3-Clause
"""Operators whose output shares memory with itself or with an operand do what they do on the CPU.

The conformance kit runs PyTorch's table of operators the same way (its check_writes.py); here is the rest.
"""

import pytest
import torch
from parity import DEVICE

from openreg_testing.conformance.operators.outcome import attempt

pytestmark = pytest.mark.no_fallback

ROWS, COLUMNS = 3, 4
MASK = torch.tensor([True, False, True, False])
INDEX = torch.tensor([0, 2])


def number(value):
    return torch.tensor(float(value))


# Of a tensor of three rows and four columns, and a function that moves operands to its device.
IN_PLACE = {
    "fill_": lambda t, to: t.fill_(2),
    "fill_ with a tensor": lambda t, to: t.fill_(to(number(2))),
    "fill_ with a tensor on the host": lambda t, to: t.fill_(number(2)),
    "zero_": lambda t, to: t.zero_(),
    "masked_fill_": lambda t, to: t.masked_fill_(to(MASK), 2),
    "masked_fill_ with a tensor": lambda t, to: t.masked_fill_(to(MASK), to(number(2))),
    "index_fill_": lambda t, to: t.index_fill_(1, to(INDEX), 2),
    "index_fill_ with a tensor": lambda t, to: t.index_fill_(1, to(INDEX), to(number(2))),
    "index_put_": lambda t, to: t.index_put_((to(INDEX),), to(number(2))),
    "assignment by index": lambda t, to: t.__setitem__(to(INDEX), 2),
    "assignment by mask": lambda t, to: t.__setitem__((slice(None), to(MASK)), 2),
    "assignment of a slice": lambda t, to: t.__setitem__((slice(None), slice(2)), 2),
    "masked_scatter_": lambda t, to: t.masked_scatter_(to(MASK), to(torch.zeros(12))),
    "put_": lambda t, to: t.put_(to(INDEX), to(torch.zeros(2))),
    "copy_": lambda t, to: t.copy_(to(torch.ones(ROWS, COLUMNS))),
    "copy_ from the host": lambda t, to: t.copy_(torch.ones(ROWS, COLUMNS)),
    "copy_ of itself": lambda t, to: t.copy_(t),
    "copy_ of the same view": lambda t, to: t.copy_(t.as_strided(t.size(), t.stride(), t.storage_offset())),
    "add_": lambda t, to: t.add_(1),
    "relu_": lambda t, to: t.relu_(),
    "hardswish_": lambda t, to: torch.nn.functional.hardswish(t, inplace=True),
    "logit_": lambda t, to: t.logit_(0.1),
    "conj_physical_": lambda t, to: t.conj_physical_(),
    "tril_": lambda t, to: t.tril_(),
    "triu_": lambda t, to: t.triu_(1),
    "cumsum_": lambda t, to: t.cumsum_(0),
    "cumprod_": lambda t, to: t.cumprod_(0),
    "renorm_": lambda t, to: t.renorm_(2, 0, 0.5),
    "addmm_": lambda t, to: t.addmm_(to(torch.ones(ROWS, 2)), to(torch.ones(2, COLUMNS))),
    "scatter_": lambda t, to: t.scatter_(0, to(torch.zeros(1, COLUMNS, dtype=torch.int64)), 2),
    "index_add_": lambda t, to: t.index_add_(0, to(INDEX), to(torch.ones(2, COLUMNS))),
    "index_copy_": lambda t, to: t.index_copy_(0, to(INDEX), to(torch.ones(2, COLUMNS))),
    "resize_": lambda t, to: t.resize_(ROWS, COLUMNS),
}
RANDOM = {
    "normal_": lambda t: t.normal_(),
    "uniform_": lambda t: t.uniform_(),
    "random_": lambda t: t.random_(5),
    "bernoulli_": lambda t: t.bernoulli_(0.5),
    "bernoulli_ of a tensor": lambda t: t.bernoulli_(torch.full((ROWS, COLUMNS), 0.5, device=t.device)),
    "exponential_": lambda t: t.exponential_(),
    "geometric_": lambda t: t.geometric_(0.5),
    "cauchy_": lambda t: t.cauchy_(),
    "log_normal_": lambda t: t.log_normal_(),
}
VIEWS = {
    "expanded rows": lambda memory: memory[8:12].expand(ROWS, COLUMNS),
    "expanded columns": lambda memory: memory[8:11].view(ROWS, 1).expand(ROWS, COLUMNS),
    "one element": lambda memory: memory[8:9].expand(ROWS, COLUMNS),
    "transposed": lambda memory: memory[8:20].view(COLUMNS, ROWS).t(),
    "every second element": lambda memory: memory[8:32].view(ROWS, COLUMNS, 2)[..., 1],
    "every second row": lambda memory: memory[8:32].view(2 * ROWS, COLUMNS)[::2],
}


def outcome_on(device, view, operation):
    """What came of it, the memory afterwards and the view's shape."""
    memory = (torch.arange(40.0) % 7 / 8 + 0.0625).to(device)
    target = view(memory)
    made = attempt(lambda: operation(target) is None, device)
    return made, memory.cpu(), target.shape, target.stride()


def assert_alike(view, operation, values=True):
    ours, our_memory, *our_layout = outcome_on(DEVICE, view, operation)
    theirs, memory, *layout = outcome_on("cpu", view, operation)
    assert type(ours.error) is type(theirs.error), (ours, theirs)
    assert not ours.is_asynchronous
    assert (ours.warnings, our_layout) == (theirs.warnings, layout)
    if values:
        torch.testing.assert_close(our_memory, memory, equal_nan=True)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(name, view):
    assert_alike(VIEWS[view], lambda target: IN_PLACE[name](target, lambda operand: operand.to(target.device)))


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", RANDOM)
def test_in_place_at_random(name, view):
    assert_alike(VIEWS[view], RANDOM[name], values=False)


PARTS = {
    "later": lambda memory: memory[9:21].view(ROWS, COLUMNS),
    "earlier": lambda memory: memory[7:19].view(ROWS, COLUMNS),
    "the same": lambda memory: memory[8:20].view(ROWS, COLUMNS),
    "beside it": lambda memory: memory[20:32].view(ROWS, COLUMNS),
    "turned": lambda memory: memory[8:20].view(COLUMNS, ROWS).t(),
    "expanded": lambda memory: memory[8:12].expand(ROWS, COLUMNS),
}
OF_TWO = {
    "copy_": lambda t, other: t.copy_(other),
    "copy_ of another dtype": lambda t, other: t.view(torch.int32).copy_(other),
    "add_": lambda t, other: t.add_(other),
    "masked_fill_": lambda t, other: t.view(torch.uint8).masked_fill_(other.view(torch.bool), 1),
    "bernoulli_": lambda t, other: t.bernoulli_(other.zero_()),
    "addcmul_": lambda t, other: t.addcmul_(other, other),
    "index_copy_": lambda t, other: t.index_copy_(0, torch.arange(ROWS, device=t.device), other),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", OF_TWO)
def test_an_operand_in_the_same_memory(name, part):
    def operation(memory):
        OF_TWO[name](memory[8:20].view(ROWS, COLUMNS), PARTS[part](memory))

    if name == "masked_fill_" and part in ("turned", "expanded"):
        pytest.skip("has no view of another dtype")
    assert_alike(lambda memory: memory, operation)


REDUCTIONS = ("amax", "amin", "sum", "mean", "prod", "std", "var", "nansum", "logsumexp", "linalg_vector_norm")


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_into_its_own_operand(name):
    """Into an element of it, into all of it, and into a part that begins later."""
    reduce = torch.linalg.vector_norm if name == "linalg_vector_norm" else getattr(torch, name)
    outs = {
        "an element": lambda m: reduce(m[8:12], dim=0, out=m[9]),
        "itself": lambda m: reduce(m[8:12].view(1, 4), dim=0, out=m[8:12]),
        "later": lambda m: reduce(m[8:12].view(1, 4), dim=0, out=m[9:13]),
    }
    for operation in outs.values():
        assert_alike(lambda memory: memory, operation)


FULL = {
    "hardswish": lambda t, other: torch.ops.aten.hardswish(t, out=t),
    "huber_loss": lambda t, other: torch.ops.aten.huber_loss(t, other, 0, out=t),
    "huber_loss of the second": lambda t, other: torch.ops.aten.huber_loss(other, t, 0, out=t),
    "binary_cross_entropy": lambda t, other: torch.ops.aten.binary_cross_entropy(t, other, None, 0, out=t),
    "mse_loss": lambda t, other: torch.ops.aten.mse_loss(t, other, 0, out=t),
    "smooth_l1_loss": lambda t, other: torch.ops.aten.smooth_l1_loss(t, other, 0, out=t),
    "soft_margin_loss": lambda t, other: torch.ops.aten.soft_margin_loss(t, other, 0, out=t),
    "log_sigmoid": lambda t, other: torch.ops.aten.log_sigmoid(t, out=t),
    "hardtanh": lambda t, other: torch.ops.aten.hardtanh(t, out=t),
}


@pytest.mark.parametrize("view", ["contiguous", "stepped"])
@pytest.mark.parametrize("name", FULL)
def test_an_output_that_is_the_operand_of_a_function_element_by_element(name, view):
    def computed(device):
        memory = torch.arange(1, 49, dtype=torch.float32, device=device).div(50).view(2, 24)
        own, other = (part.view(ROWS, 8)[:, :: 2 if view == "stepped" else 1] for part in memory)
        FULL[name](own, other)
        return memory.cpu()

    torch.testing.assert_close(computed(DEVICE), computed("cpu"))


RESIZED = {
    "mm": lambda t, square: torch.mm(t, square[:, :1], out=t),
    "bmm": lambda t, square: torch.bmm(batch := t[None], square[None, :, :1], out=batch),
    "linear": lambda t, square: torch.nn.functional.linear(t, square[:1], out=t),
    "var": lambda t, square: torch.var(t, 0, out=t),
    "amax": lambda t, square: torch.amax(t, 0, out=t),
    "avg_pool2d": lambda t, square: torch._C._nn.avg_pool2d(batch := t[None], 2, out=batch),
    "lu_solve": lambda t, square: torch.linalg.lu_solve(
        square, torch.arange(1, 5).int().to(t.device), t.t(), out=square
    ),
    "median": lambda t, square: torch.median(t, 0, out=(t, t.new_empty(0, dtype=torch.int64))),
    "cat": lambda t, square: torch.cat([t, t], out=t),
}


@pytest.mark.parametrize("name", RESIZED)
def test_an_output_that_is_an_operand_is_not_resized(name):
    t, square = torch.rand(ROWS, COLUMNS, device=DEVICE), torch.rand(COLUMNS, COLUMNS, device=DEVICE)
    before = t.clone()
    with pytest.raises(RuntimeError, match=r"another tensor|single memory location"):
        RESIZED[name](t, square)
    assert t.equal(before)


def test_a_batch_that_is_expanded_is_refused_in_place():
    """The CPU's kernel writes beyond the memory of such a batch."""
    batch = torch.ones(1, 3, 3, device=DEVICE).expand(2, 3, 3)
    for operation in (batch.tril_, batch.triu_):
        with pytest.raises(RuntimeError, match="more than one element"):
            operation()
    torch.openreg.synchronize()


def test_samples_into_expanded_memory_are_refused():
    """At the call, and unlike on the CPU, whose kernel writes one place several times."""
    out = torch.empty(3, 1, dtype=torch.int64, device=DEVICE).expand(3, 4)
    with pytest.raises(RuntimeError, match="more than one element"):
        torch.multinomial(torch.ones(3, 4, device=DEVICE), 4, replacement=True, out=out)
    torch.openreg.synchronize()


def test_memory_that_is_filled_when_it_is_made():
    """torch.use_deterministic_algorithms() fills new memory, that of tensors whose elements share it, too."""
    torch.use_deterministic_algorithms(True)
    try:
        x = torch.empty_strided((2, 3), (0, 1), device=DEVICE)
        assert x.isnan().all()
        assert torch.empty_strided((2, 3), (1, 1), device=DEVICE, dtype=torch.int32).eq(2**31 - 1).all()
    finally:
        torch.use_deterministic_algorithms(False)
