# SPDX-License-Identifier: BSD-3-Clause
"""Launches report to observers exactly the memory that each kernel, copy and fill reads and writes."""

import pytest
import torch
from launch_observer import READ, UPDATE, WRITE, observe, span
from parity import DEVICE, move_all, tensors_in
from torch.testing._internal import common_methods_invocations

LEFT_OUT = {
    **dict.fromkeys(("empty", "empty_like", "empty_permuted", "empty_strided"), "writes nothing"),
    **dict.fromkeys(("new_empty", "new_empty_strided", "resize_", "resize_as_"), "writes nothing"),
    **dict.fromkeys(("to_sparse", "sparse.sampled_addmm", "sparse.mm"), "the device stores strided tensors only"),
    "tensor_split": "takes its places from the host",
}
ENTRIES = [
    entry
    for entry in common_methods_invocations.op_db
    if torch.float32 in entry.dtypes and entry.name not in LEFT_OUT and not entry.name.startswith("jiterator")
]


def only(tasks):
    (task,) = tasks
    return task


def is_covered(whole, parts):
    """Whether ranges together contain all bytes of one."""
    reached = whole.begin
    for part in sorted(parts, key=lambda item: item.begin):
        if part.begin <= reached:
            reached = max(reached, part.end)
    return reached >= whole.end


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.full_name)
def test_results_are_reported_as_written_and_operands_are_not(entry):
    sample = next(iter(entry.sample_inputs("cpu", torch.float32)))
    first, args, kwargs = move_all((sample.input, sample.args, sample.kwargs), DEVICE)
    operands = [tensor.detach() for tensor in tensors_in((first, args, kwargs)) if tensor.numel()]
    memory = [tensor.untyped_storage().data_ptr() for tensor in operands]
    values = [tensor.cpu() for tensor in operands]
    with observe() as tasks:
        results = entry(first, *args, **kwargs)
    assert [task.name for task in tasks if task.operands is None] == []
    written = [item for task in tasks for item in task.operands if item.access & WRITE]
    for result in tensors_in(results):
        is_ours = result.device.type == DEVICE and result.numel()
        if is_ours and result.untyped_storage().data_ptr() not in memory:
            assert is_covered(span(result), written), result.shape
    for operand, value in zip(operands, values, strict=True):
        if torch.equal(operand.cpu(), value):
            assert not any(item.overlaps(span(operand)) for item in written), operand.shape


def test_a_structured_operator():
    x, y = torch.randn(3, 4, device=DEVICE), torch.randn(3, 4, device=DEVICE)
    with observe() as tasks:
        z = x + y
    add = only(tasks)
    assert (add.name, add.of(x), add.of(y), add.of(z)) == ("aten::add", [READ], [READ], [WRITE])


def test_in_place_forms_read_what_they_update():
    x, y = torch.randn(4, device=DEVICE), torch.randn(4, device=DEVICE)
    places = torch.tensor([1], device=DEVICE)
    with observe() as tasks:
        x.add_(y)
        x.relu_()
        x.index_put_((places,), y[:1])
    add, relu, put = tasks
    assert (set(add.of(x)), add.of(y)) == ({READ, WRITE}, [READ])
    assert relu.of(x) == [UPDATE]
    assert (put.of(x), put.of(y[:1])) == ([UPDATE], [READ])


def test_what_is_overwritten_is_not_read():
    x = torch.empty(4, 4, device=DEVICE)
    parts = [x[:2], x[2:]]
    y = torch.empty_like(x)
    with observe() as tasks:
        x.fill_(2)
        x.zero_()
        x.uniform_()
        x.normal_()
        torch._foreach_zero_(parts)
        y.copy_(x.t())
        torch.arange(16, out=y.view(-1))
    accesses = {item.access for task in tasks[:-2] for item in task.operands}
    assert accesses == {WRITE}
    assert (tasks[-2].of(x), tasks[-2].of(y)) == ([READ], [WRITE])
    assert tasks[-1].of(y) == [WRITE]


def test_views_are_reported_from_their_first_element_to_their_last():
    x = torch.randn(6, 8, device=DEVICE)
    view = x[1:5:2, 3:]
    with observe() as tasks:
        view.clone()
    (whole,) = [item for item in only(tasks).operands if item.access == READ]
    assert whole.begin - x.data_ptr() == (1 * 8 + 3) * 4
    assert whole.end - x.data_ptr() == (3 * 8 + 8) * 4


def test_numbers_of_the_host_and_empty_tensors_are_no_operands():
    x = torch.ones(4, device=DEVICE)
    with observe() as tasks:
        y = x * torch.tensor(2.0)
        torch.cat([x, x[:0]])
    multiply, cat = tasks
    assert sorted(item.access for item in multiply.operands) == [READ, WRITE]
    assert (multiply.of(x), multiply.of(y)) == ([READ], [WRITE])
    assert sorted(item.access for item in cat.operands) == [READ, WRITE]


def test_lists_are_updated_where_the_schema_says_so():
    parameters = [torch.ones(3, device=DEVICE, requires_grad=True) for _ in range(2)]
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    step = torch.optim.Adam(parameters, fused=True)
    step.step()
    with observe() as tasks:
        step.step()
        torch._foreach_add_([p.grad for p in parameters], 1)
    adam = next(task for task in tasks if task.name == "aten::_fused_adam_")
    state = step.state[parameters[0]]
    assert adam.of(parameters[0]) == [UPDATE]
    assert (adam.of(state["exp_avg"]), adam.of(state["step"])) == ([UPDATE], [READ])
    assert tasks[-1].of(parameters[1].grad) == [UPDATE]


def test_running_statistics_are_updated():
    norm = torch.nn.BatchNorm1d(3, device=DEVICE)
    x = torch.randn(5, 3, device=DEVICE)
    with observe() as tasks:
        norm(x)
    kernel = next(task for task in tasks if task.name == "aten::native_batch_norm")
    assert (kernel.of(norm.running_mean), kernel.of(x)) == ([UPDATE], [READ])
    assert kernel.of(norm.weight) == [READ]


def test_kernels_of_our_own():
    table, places = torch.randn(5, 4, device=DEVICE), torch.tensor([1, 3], device=DEVICE)
    x = torch.randn(4, device=DEVICE)
    with observe() as tasks:
        rows = torch.nn.functional.embedding(places, table)
        magnitude = x.abs()
    embedding, absolute = tasks
    assert (embedding.of(table), embedding.of(places), embedding.of(rows)) == ([READ], [READ], [WRITE])
    assert (absolute.of(x), absolute.of(magnitude)) == ([READ], [WRITE])


def test_what_the_host_waits_for():
    x = torch.tensor([0.0, 2.0, 3.0], device=DEVICE)
    with observe() as tasks:
        x.nonzero()
        torch.equal(x, x)
        x[1].item()
    assert all(task.operands is not None for task in tasks)
    count, _, equal, item = tasks
    assert (count.of(x), equal.of(x), item.of(x[1])) == ([READ], [READ, READ], [READ])


def test_the_fallback():
    x = torch.arange(6.0, device=DEVICE)
    with torch.openreg.fallback_operators("aten::histc", "aten::histc.out"), observe() as tasks:
        result = torch.histc(x, 3)
        out = torch.empty(3, device=DEVICE)
        torch.histc(x, 3, out=out)
    kernels = [task for task in tasks if task.name == "aten::histc"]
    assert [kernel.of(x) for kernel in kernels] == [[READ], [READ]]
    assert any(task.kind == "copy" and task.of(result) == [WRITE] for task in tasks)
    assert kernels[1].of(out) == [WRITE]


def test_a_kernel_in_python(custom):
    def multiply(x, y):
        y.mul_(x)

    scale = custom("scale(Tensor x, Tensor(a!) y) -> ()", multiply)
    x, y = torch.full((3,), 2.0, device=DEVICE), torch.ones(3, device=DEVICE)
    with observe() as tasks:
        scale(x, y)
    kernel = next(task for task in tasks if task.name and task.name.endswith("::scale"))
    assert (kernel.of(x), kernel.of(y)) == ([READ], [UPDATE])
    assert y.cpu().tolist() == [2.0] * 3


def test_graphs_keep_the_operands_of_a_capture_for_their_replays():
    x = torch.ones(4, device=DEVICE)
    graph = torch.openreg.Graph()
    stream = torch.openreg.Stream()
    with torch.openreg.stream(stream):
        graph.capture_begin()
        y = x * 3
        graph.capture_end()
    with observe() as tasks:
        graph.replay()
    multiply = next(task for task in tasks if task.name == "aten::mul")
    assert (multiply.of(x), multiply.of(y)) == ([READ], [WRITE])
