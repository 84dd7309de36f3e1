# SPDX-License-Identifier: BSD-3-Clause
"""A kernel's exception is raised by the call where the CPU or CUDA raises there, and is asynchronous otherwise."""

import importlib.util
from pathlib import Path

import pytest
import torch
from failure_cases import AT_THE_CALL, LATER, NEVER, evaluate
from parity import DEVICE, assert_same, is_busy

pytestmark = [
    pytest.mark.no_fallback,
    pytest.mark.filterwarnings("ignore:.*uint8 is now deprecated"),
    pytest.mark.filterwarnings("ignore:.*experimental"),
]

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "async_errors.py"
FLOATS = (torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz, torch.float8_e8m0fnu)
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
# Dtypes that few kernels take, and an operator that refuses each.
UNCOMMON = [
    *((dtype, "neg") for dtype in FLOATS),
    *((dtype, "bitwise_not") for dtype in UNSIGNED),
    (torch.complex32, "exp"),
]


def error_of(call, device):
    """The type of the exception that the call raises."""
    with pytest.raises((RuntimeError, NotImplementedError, IndexError, ValueError), match=r".") as caught:
        evaluate(call, device)
    return caught.type


@pytest.mark.parametrize("call", AT_THE_CALL)
def test_what_the_cpu_raises_at_the_call(call):
    kept = torch.arange(3, device=DEVICE)
    assert error_of(call, DEVICE) is error_of(call, "cpu")
    torch.openreg.synchronize()
    assert (kept + 1).tolist() == [1, 2, 3]


@pytest.mark.parametrize("call", NEVER)
def test_what_no_device_refuses(call):
    assert_same(evaluate(call, DEVICE), evaluate(call, "cpu"))


def call_and_wait(call):
    """The call itself raises if it launches again after its kernel failed."""
    evaluate(call, DEVICE)
    torch.openreg.synchronize()


@pytest.mark.parametrize("case", LATER, ids=lambda case: case.call)
def test_what_stops_the_device_as_on_a_gpu(case):
    with pytest.raises((RuntimeError, IndexError)):
        evaluate(case.call, "cpu")
    with pytest.raises(torch.AcceleratorError, match=r"kernel 'aten::\w+' failed"):
        call_and_wait(case.call)
    torch.openreg.reset_device()


def test_the_page_of_async_errors_is_what_the_script_gives():
    spec = importlib.util.spec_from_file_location("async_errors", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.PAGE.read_text("utf-8") == script.render(LATER), f"run python {SCRIPT.name}"


@pytest.mark.parametrize(("dtype", "name"), UNCOMMON, ids=str)
def test_a_dtype_that_the_kernel_refuses_is_the_callers_mistake(dtype, name):
    x = torch.ones(3, device=DEVICE).to(dtype)
    with pytest.raises(NotImplementedError, match=rf"not implemented for .*aten::{name} on {DEVICE}:0"):
        getattr(torch, name)(x)
    assert x.to(torch.complex64).cpu().tolist() == [1, 1, 1]


def test_the_first_launch_of_a_kind_waits_and_later_ones_do_not(gate):
    x = torch.ones(3, 5, device=DEVICE).to(torch.float8_e5m2)
    x.isnan()
    gate.close()
    flags = x.isnan()
    assert is_busy()
    gate.open()
    assert not flags.any().item()


def test_what_a_kind_is():
    """A kernel that took a dtype in one form may refuse it in another: each form is tried."""
    x = torch.ones(4, device=DEVICE).to(torch.uint16)
    assert torch.div(x, x).tolist() == [1, 1, 1, 1]
    for _ in range(2):
        with pytest.raises(NotImplementedError, match="UInt16"):
            torch.div(x, x, rounding_mode="floor")
    torch.openreg.synchronize()


# Two calls of which the CPU's kernel takes the first and refuses the second: a dimension, a dilation, emptiness.
FORMS = {
    "dimension": (torch.bits8, lambda x: x.flip(0), lambda x: x.flip(2)),
    "reduced dimension": (
        torch.float8_e5m2,
        lambda x: torch.linalg.vector_norm(x[:1], dim=0),
        lambda x: torch.linalg.vector_norm(x[:1], dim=1),
    ),
    "dilation": (
        torch.int16,
        lambda x: torch.conv2d(x[None], x[None, :, :2, :2]),
        lambda x: torch.conv2d(x[None], x[None, :, :2, :2], dilation=2),
    ),
    "no elements": (torch.bits8, lambda x: x.new_zeros(2, 2), lambda x: x.new_zeros(2, 0)),
}


@pytest.mark.parametrize("form", FORMS)
def test_lists_and_emptiness_make_a_kind(form):
    dtype, taken, refused = FORMS[form]
    x = torch.ones(4, 4, 4, dtype=torch.uint8).view(dtype) if dtype == torch.bits8 else torch.ones(4, 4, 4).to(dtype)
    ours = x.to(DEVICE)
    taken(x), taken(ours)
    for operand in (x, ours):
        with pytest.raises(NotImplementedError, match="not implemented for"):
            refused(operand)
    torch.openreg.synchronize()


def test_a_number_makes_a_kind_where_kernels_know_it(gate):
    """Kernels have code for small halves and infinities; with any other number a launch is one of those before."""
    x = torch.ones(3, 5, device=DEVICE).to(torch.complex32)
    x * 0.3
    gate.close()
    scaled = x * 0.7
    assert is_busy()
    gate.open()
    assert scaled.shape == (3, 5)


def test_nothing_is_learned_from_what_has_no_elements():
    """Many kernels return before they look at the dtype."""
    x = torch.ones(3, 3, device=DEVICE).to(torch.uint16)
    assert torch.mm(x[:0], x).shape == (0, 3)
    with pytest.raises(NotImplementedError, match="UInt16"):
        torch.mm(x, x)
    torch.openreg.synchronize()


def test_a_dtype_that_few_kernels_take_is_captured_where_the_kernel_takes_it():
    x = torch.ones(2, 3, 4, device=DEVICE).to(torch.float8_e5m2)
    graph = torch.openreg.Graph()
    with torch.openreg.graph(graph):
        flags = x.isinf()
        with pytest.raises(NotImplementedError, match="not implemented for 'Float8_e5m2'"):
            x.neg()
    graph.replay()
    assert not flags.any().item()


def test_sparse_operands_are_captured_once_the_call_has_run():
    """A kernel follows their indices, so it is not tried without them."""
    x = torch.eye(3, device=DEVICE).to_sparse()
    dense = torch.ones(3, 5, device=DEVICE)
    graph = torch.openreg.Graph()
    with torch.openreg.graph(graph), pytest.raises(NotImplementedError, match="before the capture"):
        x @ dense
    x @ dense
    graph = torch.openreg.Graph()
    with torch.openreg.graph(graph):
        product = x @ dense
    graph.replay()
    assert product.equal(dense)


def replay_and_wait(graph):
    graph.replay()  # raises itself if the kernel has failed by then
    torch.openreg.synchronize()


def test_a_division_of_integers_is_captured_and_judged_by_the_replay():
    numbers, divisors = torch.tensor([6, 8], device=DEVICE), torch.tensor([3, 2], device=DEVICE)
    graph = torch.openreg.Graph()
    with torch.openreg.graph(graph):
        quotients = numbers // divisors
    graph.replay()
    assert quotients.tolist() == [2, 4]
    divisors.zero_()
    with pytest.raises(torch.AcceleratorError, match="ZeroDivisionError"):
        replay_and_wait(graph)
    torch.openreg.reset_device()


def test_the_host_does_not_wait_for_a_division_that_cannot_fail(gate):
    numbers = torch.tensor([6, 8], device=DEVICE)
    gate.close()
    quotients = numbers // 2
    ratio = numbers / numbers
    assert is_busy()
    gate.open()
    assert (quotients.tolist(), ratio.tolist()) == ([3, 4], [1, 1])


def test_the_sync_debug_mode_objects_where_it_would_on_cuda():
    matrix, divisors = torch.eye(2, device=DEVICE), torch.tensor([1, 2], device=DEVICE)
    torch.openreg.set_sync_debug_mode("error")
    try:
        divisors // divisors
        with pytest.raises(RuntimeError, match="waits"):
            torch.linalg.svd(matrix)
    finally:
        torch.openreg.set_sync_debug_mode("default")


def test_one_value_fits_whatever_a_mask_chooses(gate):
    x = torch.ones(3, device=DEVICE)
    mask = torch.tensor([True, False, True], device=DEVICE)
    gate.close()
    x[mask] = 0
    assert is_busy()
    gate.open()
    assert x.tolist() == [0, 1, 0]
