# SPDX-License-Identifier: BSD-3-Clause
"""Every unstructured operator of the table launches asynchronously, can be captured, and refuses invalid operands."""

import pytest
import torch
from parity import DEVICE, check_failure, is_busy

pytestmark = pytest.mark.no_fallback


def ours(values, **options):
    return torch.tensor(values, device=DEVICE, **options)


FORMS = {
    "functional kernel": lambda x, index, out: x.flip(0),
    "out kernel": lambda x, index, out: x.take(index),
    "in-place": lambda x, index, out: x.index_fill_(0, index, 2.0),
    "out": lambda x, index, out: torch.take(x, index, out=out),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_launch_returns_before_its_kernel_ran(form, gate):
    x, index, out = ours([1.0, 2.0]), ours([1, 0]), torch.empty(2, device=DEVICE)
    gate.close()
    result = FORMS[form](x, index, out)
    assert is_busy()
    gate.open()
    assert result.cpu().tolist() == ([2, 2] if form == "in-place" else [2, 1])


def test_a_graph_replays_the_kernels_on_new_values():
    x, index, out = ours([1.0, 2.0, 3.0]), ours([2, 0]), torch.empty(2, device=DEVICE)
    graph = torch.openreg.Graph()
    with torch.openreg.graph(graph):
        flipped, taken = x.flip(0), x.take(index)
        torch.take(x, index, out=out)
    for values in ([4.0, 5.0, 6.0], [7.0, 8.0, 9.0]):
        x.copy_(torch.tensor(values))
        graph.replay()
        assert flipped.cpu().tolist() == values[::-1]
        assert taken.cpu().tolist() == out.cpu().tolist() == [values[2], values[0]]


def test_out_of_another_size_is_resized_with_pytorchs_warning():
    x, index, out = ours([1.0, 2.0, 3.0]), ours([2, 0]), torch.empty(5, device=DEVICE)
    with pytest.warns(UserWarning, match="resized"):
        torch.take(x, index, out=out)
    assert out.cpu().tolist() == [3, 1]


@pytest.mark.parametrize("other", ["cpu", "openreg:1"])
def test_operands_on_several_devices_are_refused(other):
    x, index = ours([1.0, 2.0]), ours([1, 0])
    operations = [
        lambda: x.take(index.to(other)),
        lambda: x.to(other).take(index),
        lambda: x.index_fill_(0, index.to(other), 1),
        lambda: torch.take(x, index, out=torch.empty(2, device=other)),
    ]
    for operation in operations:
        with pytest.raises(RuntimeError, match="same device"):
            operation()


@pytest.mark.parametrize(
    "operation",
    [
        lambda x, index: x.flip(1),
        lambda x, index: x.index_select(0, index[None]),
        lambda x, index: x.take(index.float()),
        lambda x, index: torch.take(x, index, out=x.new_empty(1).expand(2)),
        lambda x, index: torch.take(x, index, out=x[:2]),
        lambda x, index: x[:1].expand(3).put_(index, x[:2]),
        lambda x, index: torch.roll(x[:0, None], (1, 2), (0,)),
    ],
)
def test_mistakes_fail_on_the_calling_line(operation):
    check_failure(operation, torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 0]))


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        (lambda x: torch._prelu_kernel(x.half(), x), "expected scalar type Half but found Float"),
        (lambda x: torch._prelu_kernel(x, x.half()), "expected scalar type Float but found Half"),
        (lambda x: torch._cummax_helper(x, x.new_empty(2), x.long(), 0), "values has the shape"),
        (lambda x: torch._cummin_helper(x, x.clone(), x.int(), 0), "indices has the shape"),
    ],
)
def test_operands_that_the_cpu_refuses_in_other_words_or_not_at_all(operation, text):
    with pytest.raises(RuntimeError, match=text):
        operation(ours([1.0, 2.0, 3.0]))
    torch.openreg.synchronize()


@pytest.mark.parametrize(
    "operation",
    [
        lambda vector, _: torch.addr(torch.ones(3, 3, device=DEVICE), vector, vector, out=vector),
        lambda vector, matrix: torch.linalg.householder_product(matrix, vector, out=vector),
        lambda vector, matrix: torch.linalg.solve_triangular(matrix, vector[:, None], upper=True, out=matrix),
        lambda _, matrix: torch.std(matrix, 0, out=matrix),
    ],
)
def test_an_operand_that_would_get_another_size_is_refused_as_an_output(operation):
    vector, matrix = torch.ones(3, device=DEVICE), torch.eye(3, device=DEVICE)
    with pytest.raises(RuntimeError, match="a single memory location"):
        operation(vector, matrix)
    assert vector.cpu().tolist() == [1, 1, 1]
    assert matrix.cpu().tolist() == torch.eye(3).tolist()


def test_an_output_of_another_dtype_is_refused():
    x, index = ours([1.0, 2.0, 3.0]), ours([1, 0])
    with pytest.raises(RuntimeError, match="dtype"):
        torch.take(x, index, out=torch.empty(2, dtype=torch.int32, device=DEVICE))
    assert x.cpu().tolist() == [1, 2, 3]


def test_an_index_out_of_range_fails_at_the_next_synchronization():
    ours([1.0, 2.0]).take(ours([5]))
    with pytest.raises(torch.AcceleratorError, match=r"aten::take.*out of range"):
        torch.openreg.synchronize()
    torch.openreg.reset_device(0)
