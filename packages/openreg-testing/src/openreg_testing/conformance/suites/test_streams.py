# SPDX-License-Identifier: BSD-3-Clause
"""Streams: the order of tasks in a stream, waits between streams, and the current stream of each thread.

``@covers`` takes the keys of the rows of hooks.toml (openreg-doctor) that the test covers. A row is a hook, a name or a
registration that a backend provides and PyTorch uses. The device under test may be the CPU; tests with the fixture
``accelerator`` or ``streams`` are then skipped. Those with ``streams`` are also skipped on a backend without streams.
"""

import threading

import pytest
import torch

from openreg_testing.conformance.harness import SIZE, DeviceUnderTest, covers, much_work


@covers("guard.getStream")
def test_there_is_a_current_stream(accelerator: DeviceUnderTest) -> None:
    """torch.accelerator.current_stream() returns a stream of the current device, and an equal one for each call."""
    stream = torch.accelerator.current_stream()
    assert stream.device == accelerator.first
    assert stream == torch.accelerator.current_stream()


@covers("guard.getNewStream")
def test_a_new_stream_is_another_one(accelerator: DeviceUnderTest) -> None:
    """torch.Stream(device) returns another stream than the current one."""
    stream = torch.Stream(accelerator.first)
    assert stream.device == accelerator.first
    assert stream != torch.accelerator.current_stream()


@covers("guard.getNewStream")
def test_a_stream_has_a_priority(accelerator: DeviceUnderTest) -> None:
    """torch.Stream(device, priority) accepts a priority, and kernels on such streams compute correct results."""
    low, high = torch.Stream(accelerator.first, priority=0), torch.Stream(accelerator.first, priority=-1)
    x = accelerator.tensor()
    accelerator.wait()
    with low:
        y = x + 1
    with high:
        z = x + 2
    accelerator.wait()
    assert y.tolist() == [2, 3, 4]
    assert z.tolist() == [3, 4, 5]


@covers("guard.exchangeStream")
def test_a_context_makes_a_stream_current(streams: DeviceUnderTest) -> None:
    """`with stream:` makes a stream current, and restores the old one; contexts can be nested."""
    before = torch.accelerator.current_stream()
    one, other = torch.Stream(streams.first), torch.Stream(streams.first)
    with one:
        assert torch.accelerator.current_stream() == one
        with other:
            assert torch.accelerator.current_stream() == other
        assert torch.accelerator.current_stream() == one
    assert torch.accelerator.current_stream() == before


@covers("guard.exchangeStream")
def test_a_stream_can_be_set(streams: DeviceUnderTest) -> None:
    """torch.accelerator.set_stream() makes a stream current until the next change."""
    before, stream = torch.accelerator.current_stream(), torch.Stream(streams.first)
    torch.accelerator.set_stream(stream)
    try:
        assert torch.accelerator.current_stream() == stream
    finally:
        torch.accelerator.set_stream(before)


@covers("guard.exchangeStream")
def test_a_thread_has_its_own_current_stream(streams: DeviceUnderTest) -> None:
    """Each thread has its own current stream, and begins with the default stream."""
    default, seen = torch.accelerator.current_stream(), []
    with torch.Stream(streams.first):
        thread = threading.Thread(target=lambda: seen.append(torch.accelerator.current_stream()))
        thread.start()
        thread.join()
    assert seen == [default]


@covers("guard.exchangeStream")
def test_a_stream_of_another_device_makes_that_device_current(streams: DeviceUnderTest) -> None:
    """`with stream:` of another device also makes that device current, and restores device and stream."""
    stream = torch.Stream(streams.second)
    with stream:
        assert torch.accelerator.current_device_index() == 1
        assert torch.accelerator.current_stream() == stream
    assert torch.accelerator.current_device_index() == 0


@covers("guard.synchronizeStream", "guard.queryStream")
def test_a_stream_can_be_waited_for(streams: DeviceUnderTest) -> None:
    """After Stream.synchronize() all tasks of the stream are complete, and query() is true."""
    x, stream = torch.ones(SIZE).to(streams.first), torch.Stream(streams.first)
    streams.wait()
    with stream:
        y = much_work(x)
    stream.synchronize()
    assert stream.query(), "query() is false after synchronize()"
    assert (y.cpu() == 1).all()


@covers("guard.synchronizeStream")
def test_work_on_one_stream_is_in_order(streams: DeviceUnderTest) -> None:
    """Kernels on a stream run one after the other, in the order of their launches."""
    stream = torch.Stream(streams.first)
    with stream:
        x = torch.zeros(SIZE, device=streams.first)
        for number in range(1, 31):
            x.mul_(0).add_(number)
    stream.synchronize()
    assert (x.cpu() == 30).all()


@covers("guard.block", "guard.record")
def test_a_stream_waits_for_another(streams: DeviceUnderTest) -> None:
    """After b.wait_stream(a), kernels on b run after the kernels that were launched on a before."""
    one, other = torch.Stream(streams.first), torch.Stream(streams.first)
    for _ in range(5):
        with one:
            x = much_work(torch.ones(SIZE, device=streams.first))
            x.fill_(2)
        other.wait_stream(one)
        with other:
            y = x * 2
        other.synchronize()
        assert (y.cpu() == 4).all(), "a kernel ran before the stream for which it waits was complete"


@covers("guard.queryStream")
def test_an_idle_stream_says_so(streams: DeviceUnderTest) -> None:
    """Stream.query() is true for a stream without tasks."""
    assert torch.Stream(streams.first).query() is True


@covers("guard.queryStream")
def test_a_busy_stream_says_so(streams: DeviceUnderTest) -> None:
    """The host continues while the device computes, and Stream.query() is false until all tasks are complete."""
    stream = torch.Stream(streams.first)
    with stream:
        for size in (256, 512, 1024, 2048):
            x = torch.ones(size, size).to(streams.first)
            stream.synchronize()
            y = x @ x
            if not stream.query():
                break
        else:
            pytest.skip("the device is synchronous: a product of 2048 rows was complete when its call returned")
    stream.synchronize()
    assert stream.query(), "query() is false after synchronize()"
    assert bool((y == size).all())


@covers("guard.isStreamCapturing")
def test_no_stream_is_captured(streams: DeviceUnderTest) -> None:
    """Stream.is_capturing() is false unless a graph is being captured."""
    assert torch.Stream(streams.first).is_capturing() is False


@covers("guard.getStreamNativeHandle")
def test_a_stream_has_a_native_handle(streams: DeviceUnderTest) -> None:
    """Stream.native_handle is an int that differs between streams."""
    one, other = torch.Stream(streams.first), torch.Stream(streams.first)
    handles = [getattr(stream, "native_handle") for stream in (one, other)]  # noqa: B009  (absent from PyTorch's annotations)
    assert all(isinstance(handle, int) for handle in handles)
    assert handles[0] != handles[1]


@covers("registration.aten::record_stream", "device_allocator.recordStream")
def test_memory_is_kept_for_a_recorded_stream(streams: DeviceUnderTest) -> None:
    """Memory of a deleted tensor is not reused while a stream passed to record_stream() still uses it."""
    side = torch.Stream(streams.first)
    for _ in range(10):
        x = torch.ones(SIZE, device=streams.first)
        side.wait_stream(torch.accelerator.current_stream())
        with side:
            work = much_work(torch.ones(SIZE, device=streams.first))
            y = x + work
        x.record_stream(side)
        del x
        torch.full((SIZE,), 100.0, device=streams.first)  # would reuse the memory if it were free
        side.synchronize()
        assert (y.cpu() == 2).all(), "memory was reused while a recorded stream used it"
        del work


@covers("guard.getStream")
def test_a_backward_pass_uses_the_stream_of_its_forward_pass(streams: DeviceUnderTest) -> None:
    """Autograd computes a gradient on the stream of its forward operator, and synchronizes the streams at the end."""
    side = torch.Stream(streams.first)
    x = torch.ones(SIZE, device=streams.first, requires_grad=True)
    side.wait_stream(torch.accelerator.current_stream())
    with side:
        y = (x * 3).sum()
    torch.accelerator.current_stream().wait_stream(side)
    y.backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    assert (x.grad.cpu() == 3).all()


@covers("module.Stream")
def test_the_module_has_a_stream_class(accelerator: DeviceUnderTest) -> None:
    """torch.<device>.Stream() returns a torch.Stream on the current device."""
    stream = accelerator.module.Stream()
    assert isinstance(stream, torch.Stream)
    assert stream.device == accelerator.first


@covers("module.stream", "module.current_stream")
def test_the_module_has_a_context(accelerator: DeviceUnderTest) -> None:
    """`with torch.<device>.stream(s)` makes a stream current; None changes nothing."""
    stream = accelerator.module.Stream()
    with accelerator.module.stream(stream):
        assert accelerator.module.current_stream() == stream
        with accelerator.module.stream(None):
            assert accelerator.module.current_stream() == stream
    assert accelerator.module.current_stream() != stream
