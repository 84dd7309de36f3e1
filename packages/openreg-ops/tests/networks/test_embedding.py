# SPDX-License-Identifier: BSD-3-Clause
"""Embeddings and bags of embeddings give the CPU's results and gradients, and report an index out of range."""

import pytest
import torch
from parity import DEVICE, assert_same, check, move_all
from torch.nn import functional

pytestmark = pytest.mark.no_fallback

aten = torch.ops.aten
MODES = ["sum", "mean", "max"]


def table(rows=6, width=4, dtype=torch.float32):
    return torch.randn(rows, width).to(dtype).requires_grad_()


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0,), (2, 0)], ids=str)
@pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=str)
def test_shapes_of_indices(shape, index):
    check(lambda w, i: functional.embedding(i, w), table(), torch.randint(6, shape).to(index))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_dtypes(dtype):
    check(lambda w, i: functional.embedding(i, w), table(dtype=dtype), torch.randint(6, (3,)))


@pytest.mark.parametrize("padding_idx", [None, 0, 3, -1])
@pytest.mark.parametrize("by_frequency", [False, True])
def test_padding_and_frequency(padding_idx, by_frequency):
    indices = torch.tensor([[0, 3, 3], [5, 3, 1]])
    check(lambda w, i: functional.embedding(i, w, padding_idx, scale_grad_by_freq=by_frequency), table(), indices)


def test_operands_that_are_not_contiguous():
    check(lambda w, i: functional.embedding(i.t(), w.t()), table(4, 6), torch.randint(6, (2, 3)))


def test_a_gradient_that_is_expanded():
    weights = [table().detach().to(device).requires_grad_() for device in (DEVICE, "cpu")]
    for weight in weights:
        functional.embedding(torch.tensor([1, 1, 4], device=weight.device), weight).sum().backward()
    assert weights[0].grad.cpu().tolist() == weights[1].grad.tolist()


def test_a_gradient_of_many_rows():
    check(
        lambda w, i: functional.embedding(i, w),
        table(50, 130),
        torch.randint(50, (3000,)),
        tolerance={"rtol": 1e-4, "atol": 1e-4},
    )


def test_renormalizing_rows():
    weights = [table().detach() * 3, None]
    weights[1] = weights[0].to(DEVICE)
    indices = torch.tensor([1, 4, 1])
    results = [functional.embedding(indices.to(w.device), w, max_norm=1.0) for w in weights]
    assert_same(results[1], results[0])
    assert_same(weights[1], weights[0])


@pytest.mark.parametrize("backward", [False, True])
def test_an_index_out_of_range_is_reported_at_the_next_synchronization(backward):
    indices = torch.tensor([1, 6], device=DEVICE)
    if backward:
        aten.embedding_dense_backward(torch.ones(2, 4, device=DEVICE), indices, 6, -1, False)
    else:
        functional.embedding(indices, torch.ones(6, 4, device=DEVICE))
    with pytest.raises(torch.AcceleratorError, match=r"embedding.*out of range"):
        torch.openreg.synchronize()
    torch.openreg.reset_device(0)


def test_mistakes_are_reported_on_the_calling_line():
    weight = torch.ones(6, 4, device=DEVICE)
    indices = torch.tensor([1], device=DEVICE)
    with pytest.raises(RuntimeError, match="must be 2-D"):
        aten.embedding(weight[0], indices)
    with pytest.raises(RuntimeError, match=r"scalar type.*Float"):
        aten.embedding(weight, weight[0])
    with pytest.raises(RuntimeError, match="same device"):
        functional.embedding(torch.tensor([1]), weight)
    with pytest.raises(RuntimeError, match="vector of int32 or int64"):
        aten._embedding_bag(weight, weight[0], indices)
    with pytest.raises(RuntimeError, match="one sample weight"):
        aten._embedding_bag(weight, indices, indices, per_sample_weights=weight[0])
    with pytest.raises(RuntimeError, match="mode='sum'"):
        aten._embedding_bag(weight, indices, indices, False, 1, False, weight[0, :1])


def bag(weight, indices, offsets, sample_weights=None, **options):
    return functional.embedding_bag(indices, weight, offsets, per_sample_weights=sample_weights, **options)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding_idx", [None, 2])
@pytest.mark.parametrize("include_last_offset", [False, True])
def test_bags(mode, padding_idx, include_last_offset):
    indices = torch.tensor([0, 2, 2, 5, 3, 1, 2])
    offsets = torch.tensor([0, 3, 3, 5, 7] if include_last_offset else [0, 3, 3, 5])
    check(bag, table(), indices, offsets, mode=mode, padding_idx=padding_idx, include_last_offset=include_last_offset)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_dtypes_of_bags(mode, dtype):
    check(bag, table(dtype=dtype), torch.randint(6, (3, 4)), None, mode=mode)


@pytest.mark.parametrize("types", [(torch.int32, torch.int32), (torch.int32, torch.int64), (torch.int64, torch.int32)])
def test_types_of_indices_and_offsets(types):
    indices, offsets = torch.tensor([0, 2, 5, 3]).to(types[0]), torch.tensor([0, 2]).to(types[1])
    if types[0] == types[1]:
        check(bag, table(), indices, offsets, mode="mean")
    else:
        arguments = (table().detach(), indices, offsets, False, 0)
        ours, theirs = aten._embedding_bag(*move_all(arguments, DEVICE)), aten._embedding_bag(*arguments)
        assert_same(ours[0], theirs[0])
        assert ours[1].dtype == theirs[1].dtype


@pytest.mark.parametrize("padding_idx", [None, 2])
def test_weights_of_samples(padding_idx):
    indices, offsets = torch.tensor([0, 2, 5, 3, 1]), torch.tensor([0, 2, 4])
    check(bag, table(), indices, offsets, torch.randn(5, requires_grad=True), mode="sum", padding_idx=padding_idx)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_gradients_of_bags_by_frequency(mode):
    check(bag, table(), torch.tensor([0, 0, 1, 5]), torch.tensor([0, 3]), mode=mode, scale_grad_by_freq=True)


@pytest.mark.parametrize("mode", MODES)
def test_bags_without_gradient(mode):
    with torch.no_grad():
        check(bag, table().detach(), torch.tensor([0, 2, 5]), torch.tensor([0, 2]), mode=mode)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_what_a_bag_saves_has_the_shapes_of_a_gpu(mode):
    arguments = (table().detach(), torch.tensor([0, 2, 5]), torch.tensor([0, 2, 3]), False, mode, False, None, True)
    ours = aten._embedding_bag(*move_all(arguments, DEVICE))
    fake = aten._embedding_bag(*move_all(arguments, "meta"))
    assert [each.shape for each in ours] == [each.shape for each in fake]
    assert ours[1].cpu().tolist() == [0, 0, 1]


@pytest.mark.parametrize("of_weights", [False, True])
def test_an_index_of_a_bag_beyond_the_weight_is_reported_at_the_next_synchronization(of_weights):
    grad, weight = torch.ones(1, 4, device=DEVICE), torch.ones(6, 4, device=DEVICE)
    indices, bags = (torch.tensor(each, device=DEVICE) for each in ([500000], [0]))
    if of_weights:
        aten._embedding_bag_per_sample_weights_backward(grad, weight, indices, bags, bags, 0)
    else:
        aten._embedding_bag_dense_backward(grad, indices, bags, bags + 1, bags, 6, False, 0, None)
    with pytest.raises(torch.AcceleratorError, match=r"_embedding_bag.*below 6"):
        torch.openreg.synchronize()
    torch.openreg.reset_device(0)
