# SPDX-License-Identifier: BSD-3-Clause
"""Operators are lowered to the loops that Inductor otherwise generates only for the device type cpu."""

import functools
import re

import pytest
import torch
from torch._inductor import config, metrics
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.select_algorithm import extern_kernels
from torch._inductor.utils import run_and_get_code
from torch.nn import functional

from openreg_compile import lowering, rewriting

DEVICE = "openreg"

pytestmark = pytest.mark.filterwarnings("ignore:::torch")


@pytest.fixture(autouse=True)
def nothing_is_compiled(monkeypatch):
    """The kernels are looked at, and do nothing."""

    def kernel(*arguments):
        return lambda *arguments: None

    monkeypatch.setattr(AsyncCompile, "cpp_pybinding", kernel)
    monkeypatch.setattr("openreg_compile.kernels.compile_kernel", kernel)
    with config.patch(force_disable_caches=True):
        yield
    torch._dynamo.reset()


def kernels(function, *inputs, device=DEVICE):
    """The C++ of the kernels that a function becomes."""
    torch._dynamo.reset()
    _, modules = run_and_get_code(torch.compile(function, fullgraph=True), *(value.to(device) for value in inputs))
    return [source for module in modules for source in re.findall(r"r'''\n?(.*?)'''", module, re.DOTALL)]


def loops(sources):
    """What is computed, without names that depend on the device."""
    return [re.sub(r"buf\d+|\s+", " ", source[source.index('extern "C"') :]) for source in sources]


def joined(x, y):
    return torch.cat([x * torch.sigmoid(x), y + x], 1) * 2


def reused(x, y):
    shared = (x + y).exp()
    return shared.sum(1), shared.sum(0), shared.t() * 2


def pooled(x, weight):
    return functional.max_pool2d(functional.conv2d(x, weight, groups=2).relu() + 1, 2)


def many_operators(x, y):
    for number in range(12):
        x = x * y + number
    return x.sum(0), x.sum(1)


INPUTS = {
    joined: ((6, 20), (6, 20)),
    reused: ((5, 16), (5, 16)),
    pooled: ((2, 4, 9, 9), (4, 2, 2, 2)),
    many_operators: ((6, 16), (6, 16)),
}


def where(number, x):
    return torch.where(number > 0, x, number)


def in_a_branch(number, x):
    return torch.cond(number > 0, torch.sub, torch.mul, (number, x))


@pytest.mark.parametrize("function", [torch.sub, torch.atan2, where, in_a_branch])
def test_what_is_computed_with_a_number_of_the_host_is_on_the_device(function):
    y = torch.compile(function, fullgraph=True)(torch.tensor(2.0), torch.ones(3, device=DEVICE))
    assert y.device == torch.device(DEVICE, 0)


@functools.cache
def loops_of_the_cpu(function):
    return loops(kernels(function, *(torch.randn(size) for size in INPUTS[function]), device="cpu"))


@pytest.mark.parametrize("function", INPUTS, ids=lambda function: function.__name__)
def test_loops_are_those_of_the_cpu(function):
    assert loops(kernels(function, *(torch.randn(size) for size in INPUTS[function]))) == loops_of_the_cpu(function)


def test_one_kernel_for_what_the_cpu_has_one_for():
    def several(x):
        first = (x * 2).relu()
        return first.sum(0), first.softmax(1)

    counts = []
    for device in ("cpu", DEVICE):
        metrics.reset()
        kernels(several, torch.randn(32, 32), device=device)
        counts.append(metrics.generated_kernel_count)
    assert counts[0] == counts[1] > 0


# What is replaced, by what, and the function whose loops are then not the CPU's.
MISTAKES = {
    "lowered as for a GPU": (lowering, "lower_as_for_cpu", lambda gm: None, joined),
    "computed again and again": (lowering, "_is_heavy", lambda result: False, reused),
    "channels apart": (lowering, "_prefers_channels_last", lambda gm: False, pooled),
    "cut into small kernels": (lowering, "_settings", lambda node: {}, many_operators),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gives_other_loops(monkeypatch, mistake):
    owner, attribute, wrong, function = MISTAKES[mistake]
    monkeypatch.setattr(owner, attribute, wrong)
    with pytest.raises(AssertionError):
        test_loops_are_those_of_the_cpu(function)


def test_a_convolution_gets_images_whose_channels_lie_together(monkeypatch):
    given, original = [], extern_kernels.convolution

    def noted(*operands, **options):
        given.extend(value.is_contiguous(memory_format=torch.channels_last) for value in operands)
        return original(*operands, **options)

    monkeypatch.setattr(extern_kernels, "convolution", noted)
    torch._dynamo.reset()
    result = torch.compile(pooled)(*(torch.randn(size, device=DEVICE) for size in INPUTS[pooled]))
    assert given == [True, True]
    assert result.is_contiguous()  # as without a compiler


def test_layouts_stay_where_the_user_says_so():
    inputs = [torch.randn(size) for size in INPUTS[pooled]]
    with config.patch(layout_optimization=False):
        assert loops(kernels(pooled, *inputs)) == loops(kernels(pooled, *inputs, device="cpu"))


@pytest.mark.parametrize(("size", "is_parallel"), [(64, False), (2**18, True)])
def test_a_loop_runs_on_several_threads_where_there_is_work_for_them(size, is_parallel):
    (source,) = kernels(lambda x: x * 2 + 1, torch.ones(size))
    assert ("#pragma omp parallel" in source) == is_parallel


def test_the_number_of_threads_is_that_of_the_engine_when_the_kernel_runs():
    (source,) = kernels(lambda x: x.sum(), torch.ones(2**18))
    assert "num_threads(" not in source
    assert "omp_get_max_threads()" in source


def test_one_thread_here_leaves_room_for_several_there(set_threads):
    """A small loop among large ones is for one of the engine's threads, even if this process has but one."""
    set_threads(1)
    (source,) = kernels(lambda x, y: (x * 2, y + 1, x - 1), torch.ones(2**18), torch.ones(3))
    assert "#pragma omp parallel" in source
    assert "#pragma omp single" in source


def test_other_devices_are_lowered_as_before():
    def function(x):
        return torch.cat([x.exp(), x], 1).sum(1)

    x = torch.randn(4, 8)
    before = kernels(function, x, device="cpu")
    kernels(function, x)
    assert loops(kernels(function, x, device="cpu")) == loops(before)


def test_a_variance_of_many_numbers_is_welfords():
    few, many = torch.randn(4, 200), torch.randn(4, 3000)
    assert "welford" not in kernels(lambda x: torch.var_mean(x, 1), few)[0]
    assert "welford" in kernels(lambda x: torch.var_mean(x, 1), many)[0]


def summed(x, index, y):
    return x.scatter_add(0, index, y) * 2, x.scatter_reduce(0, index, y, "sum", include_self=False)


# The index is no kernel's result: nothing is computed here, and the operator looks at it.
SUMMED = (torch.ones(4, 8), torch.zeros(4, 8, dtype=torch.int64), torch.ones(4, 8))


def test_sums_at_indices_are_an_operators(set_threads):
    """In loops on several threads each number would be added atomically."""
    set_threads(2)
    assert not any("atomic_add" in source for source in kernels(summed, *SUMMED))


def test_sums_at_indices_become_loops_where_inductor_is_set_so(set_threads):
    set_threads(2)
    with config.patch({"cpp.fallback_scatter_reduce_sum": False}):
        assert any("atomic_add" in source for source in kernels(summed, *SUMMED))


def test_sums_at_indices_become_loops_where_the_process_has_one_thread(set_threads):
    set_threads(1)
    assert any("atomic_add" in source for source in kernels(summed, *SUMMED))


@pytest.mark.parametrize("value", [torch.ones(3), [torch.ones(3)], None, 3])
def test_a_node_of_another_device_is_not_ours(value):
    node = torch.fx.Graph().placeholder("x")
    node.meta["val"] = value
    assert not rewriting.is_ours(node)
