# SPDX-License-Identifier: BSD-3-Clause
"""Copies in every direction, dtype and layout are right, and only those wait that have to."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parity import DEVICE, is_busy, move

pytestmark = pytest.mark.no_fallback

DTYPES = [torch.uint8, torch.int64, torch.bool, torch.float16, torch.bfloat16, torch.float32, torch.float64]
DTYPES += [torch.complex64, torch.uint16, torch.float8_e5m2]
LAYOUTS = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.transpose(0, 2),
    "sliced": lambda t: t[1:, ::2, :-1],
    "expanded": lambda t: t[:1].expand(5, -1, -1),
    "permuted": lambda t: t.permute(2, 0, 1),
    "one element": lambda t: t[1, 2, 3],
    "empty": lambda t: t[:0],
}
DIRECTIONS = [("cpu", "openreg:0"), ("openreg:0", "cpu"), ("openreg:0", "openreg:0"), ("openreg:0", "openreg:1")]
DIRECTIONS += [("openreg:1", "openreg:0"), ("openreg:1", "cpu")]


def values(dtype=torch.float32):
    return torch.arange(4 * 6 * 5).remainder(50).view(4, 6, 5).to(dtype)


@pytest.mark.covers("registration.the minimal set of operators")
@pytest.mark.parametrize(("source", "destination"), DIRECTIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_direction_and_layout(source, destination, layout):
    expected = LAYOUTS[layout](values())
    x = LAYOUTS[layout](move(values(), source))
    y = x.to(destination, copy=True)
    assert y.device == torch.device(destination)
    assert y.stride() == expected.to("cpu", copy=True).stride()
    torch.testing.assert_close(y.cpu(), expected)
    dims = tuple(reversed(range(expected.dim())))
    into = torch.zeros(expected.shape[::-1], device=destination).permute(dims)
    assert into.copy_(x) is into
    torch.testing.assert_close(into.cpu(), expected)


@pytest.mark.parametrize("source_dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("source", "destination"), [("cpu", DEVICE), (DEVICE, "cpu"), (DEVICE, DEVICE)])
def test_dtypes_are_converted(source, destination, source_dtype):
    x = values(source_dtype)
    for dtype in DTYPES:
        if source_dtype.is_complex and not dtype.is_complex:
            continue  # discards the imaginary part with a warning, as on the CPU
        expected = torch.empty(x.shape, dtype=dtype).copy_(x)
        y = torch.empty(x.shape, dtype=dtype, device=destination).copy_(move(x, source))
        assert y.cpu().view(torch.uint8).equal(expected.view(torch.uint8)), dtype


def test_a_smaller_source_is_broadcast():
    y = torch.empty(3, 2, device=DEVICE)
    y.copy_(torch.tensor([1.0, 2.0]))
    assert y.cpu().tolist() == [[1, 2]] * 3
    y.copy_(torch.tensor(5.0, device=DEVICE))
    assert y.cpu().tolist() == [[5, 5]] * 3
    with pytest.raises(RuntimeError, match=r"size|shape"):
        y.copy_(torch.ones(4))


def test_channels_last_is_kept():
    x = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    y = x.to(DEVICE)
    assert y.stride() == x.stride()
    assert y.contiguous().stride() == (60, 20, 5, 1)
    torch.testing.assert_close(y.contiguous().cpu(), x.contiguous())
    torch.testing.assert_close(y.cpu(), x)


@pytest.mark.parametrize("view", [torch.conj, lambda z: z.conj().imag, lambda z: z.mH], ids=["conj", "neg", "adjoint"])
@pytest.mark.parametrize(("source", "destination"), [("cpu", DEVICE), (DEVICE, "cpu"), (DEVICE, "openreg:1")])
def test_lazy_bits(source, destination, view):
    z = torch.randn(3, 4, dtype=torch.complex64)
    lazy = view(z.to(source))
    torch.testing.assert_close(lazy.to(destination, copy=True).cpu(), view(z))
    torch.testing.assert_close(lazy.clone().cpu(), view(z).clone())
    target = torch.zeros_like(z, device=destination)
    view(target).copy_(lazy)
    torch.testing.assert_close(view(target.cpu()), view(z))


@pytest.mark.parametrize("count", [16, 1 << 20])
def test_a_pageable_source_may_change_at_once(count, gate):
    x = torch.ones(count)
    gate.close()
    gate.open_soon()  # the host may wait for a large copy, and for nothing else
    y = x.to(DEVICE, non_blocking=True)
    strided = x.view(-1, 2).t().to(DEVICE, torch.float64, non_blocking=True)
    x.fill_(2)
    assert y.sum().item() == count
    assert strided.sum().item() == count


def test_a_small_pageable_source_does_not_wait(gate):
    gate.close()
    y = torch.ones(16).to(DEVICE)
    assert is_busy()
    gate.open()
    assert y.sum().item() == 16


def test_reading_into_pageable_memory_waits(gate):
    x = torch.ones(16, device=DEVICE)
    gate.close()
    gate.open_soon()
    y = torch.zeros(16).copy_(x + 1, non_blocking=True)
    assert gate.is_open
    assert y.tolist() == [2.0] * 16


def test_reading_without_waiting_goes_to_pinned_memory(gate):
    x = torch.ones(16, device=DEVICE)
    gate.close()
    y = (x + 1).to("cpu", non_blocking=True)  # PyTorch pins the result for this
    assert is_busy()
    gate.open()
    assert y.is_pinned()
    torch.openreg.synchronize()
    assert y.tolist() == [2.0] * 16


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["bytes", "kernel"])
def test_copies_with_pinned_memory_do_not_wait(dtype, gate):
    host = torch.ones(16, dtype=torch.float32).pin_memory()
    back = torch.zeros(16, dtype=torch.float32).pin_memory()
    gate.close()
    y = host.to(DEVICE, dtype, non_blocking=True)
    back.copy_(y + 1, non_blocking=True)
    assert is_busy()
    assert back.tolist() == [0.0] * 16  # openreg-sanitizer: ignore[host-read]
    gate.open()
    torch.openreg.synchronize()
    assert back.tolist() == [2.0] * 16


def test_without_non_blocking_pinned_memory_waits(gate):
    back = torch.zeros(16).pin_memory()
    x = torch.ones(16, device=DEVICE)
    gate.close()
    gate.open_soon()
    back.copy_(x)
    assert gate.is_open
    assert not is_busy()
    assert back.tolist() == [1.0] * 16


def test_a_storage_that_is_copied_lets_other_threads_run(gate):
    """PyTorch holds the GIL meanwhile, without which no thread can open the gate."""
    storage = torch.UntypedStorage(1000, device=DEVICE)
    gate.close()
    gate.open_soon()
    torch.UntypedStorage(1000).copy_(storage)
    assert gate.is_open


@pytest.mark.covers(
    "host_allocator.record_event", "caching_host_allocator.record_stream", "caching_host_allocator.query_event"
)
def test_pinned_memory_that_is_freed_is_not_reused_too_early(gate):
    x = torch.empty(1024, device=DEVICE)
    host = torch.full((1024,), 3.0).pin_memory()
    gate.close()
    x.copy_(host, non_blocking=True)
    del host
    others = [torch.full((1024,), 9.0).pin_memory() for _ in range(4)]
    assert is_busy()
    gate.open()
    assert x.cpu().tolist() == [3.0] * 1024
    assert all(other[0] == 9 for other in others)


def test_pinned_memory_is_not_reused_while_the_device_has_failed():
    """One of its tasks may still run, until the reset has ended them all."""
    x = torch.zeros(1 << 20, dtype=torch.uint8, device=DEVICE)
    host = torch.zeros(1 << 20, dtype=torch.uint8, pin_memory=True)
    host.copy_(x, non_blocking=True)
    torch._assert_async(torch.zeros(1, device=DEVICE))
    with pytest.raises(torch.AcceleratorError, match="nonzero"):
        torch.openreg.synchronize()
    address = host.data_ptr()
    del host
    failed = torch.empty(1 << 20, dtype=torch.uint8, pin_memory=True)
    torch.openreg.reset_device()
    assert failed.data_ptr() != address
    assert torch.empty(1 << 20, dtype=torch.uint8, pin_memory=True).data_ptr() == address


def test_copies_between_devices_follow_both_streams(gate):
    x = torch.zeros(1024, device="openreg:0")
    y = torch.zeros(1024, device="openreg:1")
    gate.close()
    x.fill_(1)  # still to come
    y.copy_(x)
    z = y + 1  # after the copy, on the other device
    x.fill_(5)  # must not overtake the copy
    assert is_busy(0)
    gate.open()
    assert z.cpu().tolist() == [2.0] * 1024


def test_a_copy_follows_the_streams_of_its_device(gate):
    x = torch.zeros(1024, device=DEVICE)
    stream = torch.openreg.Stream()
    gate.close()
    x.fill_(1)
    with torch.openreg.stream(stream):
        stream.wait_stream(torch.openreg.default_stream())
        y = x.clone()
        gate.open()
        assert y.cpu().tolist() == [1.0] * 1024


def test_copies_to_other_kinds_of_device():
    x = torch.ones(2, device=DEVICE)
    assert x.to("meta").is_meta
    with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
        x.copy_(torch.ones(2, device="meta"))


def test_gradients_come_back_through_copies():
    x = torch.randn(3, requires_grad=True)
    (x.to(DEVICE) * torch.arange(3.0, device=DEVICE)).to("openreg:1").cpu().sum().backward()
    assert x.grad.tolist() == [0, 1, 2]


@st.composite
def strided_tensors(draw):
    shape = draw(st.lists(st.integers(0, 4), min_size=0, max_size=4))
    wide = [draw(st.integers(size, 2 * size + 1)) for size in shape]
    count = torch.Size(wide).numel()
    x = torch.arange(count).to(draw(st.sampled_from(DTYPES[:7]))).view(wide)
    for dim, size in enumerate(shape):
        step = draw(st.sampled_from([1, 2])) if wide[dim] >= 2 * size else 1
        x = x.narrow(dim, 0, size * step)[(slice(None),) * dim + (slice(None, None, step),)]
    return x.permute(draw(st.permutations(range(x.dim())))) if x.dim() else x


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(x=strided_tensors(), y=strided_tensors(), dtype=st.sampled_from(DTYPES[:7]))
def test_any_layout_arrives(x, y, dtype):
    there = move(x, DEVICE)
    assert (there.shape, there.stride(), there.storage_offset()) == (x.shape, x.stride(), x.storage_offset())
    assert there.cpu().equal(x)
    assert there.to(dtype).cpu().equal(x.to(dtype))
    assert there.clone().stride() == x.clone().stride()
    assert x.to(DEVICE).cpu().equal(x)
    if x.shape == y.shape:
        assert move(y, DEVICE).copy_(there).cpu().equal(y.clone().copy_(x))
        assert move(y, DEVICE).copy_(x).cpu().equal(y.clone().copy_(x))
        assert y.clone().copy_(there).equal(y.clone().copy_(x))
