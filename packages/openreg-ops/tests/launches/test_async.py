# SPDX-License-Identifier: BSD-3-Clause
"""Launches return before their kernels run, stay in stream order, and report a failed kernel at the next wait."""

import pytest
import torch
from parity import DEVICE, is_busy

LAUNCHES = {
    "structured": lambda x: x.exp().sum() * 2,
    "in place": lambda x: x.clone().add_(1).fill_(3),
    "matmul": lambda x: x.view(4, 4) @ x.view(4, 4),
    "copy": lambda x: x.clone().to(torch.float64),
    "convolution": lambda x: torch.nn.functional.conv1d(x.view(1, 1, 16), x[:3].view(1, 1, 3)),
    "batch norm": lambda x: torch.nn.functional.batch_norm(x.view(4, 4), None, None, training=True),
    "pooling": lambda x: torch.nn.functional.adaptive_avg_pool2d(x.view(1, 4, 4), 2),
    "dropout": lambda x: torch.nn.functional.dropout(x, 0.5),
    "random": lambda x: torch.randn(3, device=DEVICE),
    "foreach": lambda x: torch._foreach_add([x, x], 1.0),
    "where": lambda x: torch.where(x > 0, x, 0.0),
    "arange": lambda x: torch.arange(4, device=DEVICE),
    "from the host": lambda x: torch.tensor([1.0, 2.0], device=DEVICE),
}


@pytest.mark.parametrize("name", LAUNCHES)
@pytest.mark.no_fallback
def test_the_host_goes_on(name, gate):
    x = torch.ones(16, device=DEVICE)
    LAUNCHES[name](x)
    torch.openreg.synchronize()
    gate.close()
    LAUNCHES[name](x)
    assert is_busy()


def test_backward_passes_launch_too(gate):
    x = torch.ones(16, device=DEVICE, requires_grad=True)
    (x * 2).sum().backward()
    torch.openreg.synchronize()
    gate.close()
    (x * 3).sum().backward()
    assert is_busy()
    gate.open()
    assert x.grad.cpu().tolist() == [5.0] * 16


def test_a_number_on_the_host_may_change_or_go_after_the_launch(gate):
    x, two = torch.ones(4, device=DEVICE), torch.tensor(2.0)
    gate.close()
    y, z = x * two, torch.where(x > 0, two, x)
    two.fill_(100)
    del two
    assert is_busy()
    gate.open()
    assert y.cpu().tolist() == [2.0] * 4
    assert z.cpu().tolist() == [2.0] * 4


def test_freed_memory_is_reused_in_stream_order(gate):
    x = torch.ones(1 << 16, device=DEVICE)
    torch.openreg.synchronize()
    gate.close()
    y = x + 1
    address = x.data_ptr()
    del x
    z = torch.zeros(1 << 16, device=DEVICE)  # in the memory that the addition has yet to read
    assert z.data_ptr() == address
    assert is_busy()
    gate.open()
    assert y.sum().item() == 2 << 16
    assert z.sum().item() == 0


def fail(device=DEVICE):
    return torch.gather(torch.zeros(3, device=device), 0, torch.tensor([9], device=device))


@pytest.mark.parametrize(
    "wait",
    [
        lambda y: y.cpu(),
        lambda y: y.sum().item(),
        lambda y: torch.openreg.synchronize(),
        lambda y: torch.openreg.current_stream().synchronize(),
        lambda y: torch.accelerator.synchronize(),
    ],
    ids=["cpu", "item", "device", "stream", "accelerator"],
)
def test_a_failed_kernel_is_named_at_the_next_wait(wait):
    y = fail()  # an index out of range is seen by the kernel only
    with pytest.raises(torch.AcceleratorError, match=r"device 0.*aten::gather.*out of bounds.*reset_device"):
        wait(y)
    torch.openreg.reset_device()


def test_a_failed_device_skips_its_work_and_others_go_on(gate):
    x, other = torch.ones(3, device="openreg:0"), torch.ones(3, device="openreg:1")
    torch.openreg.synchronize()
    gate.close()
    fail()
    x.fill_(7)  # will be skipped
    gate.open()
    assert (other + 1).cpu().tolist() == [2.0] * 3
    torch.openreg.synchronize(1)
    for _ in range(2):  # the error stays
        with pytest.raises(torch.AcceleratorError, match="aten::gather"):
            torch.openreg.synchronize(0)
    with pytest.raises(torch.AcceleratorError, match="aten::gather"):
        x.fill_(8)  # a failed device takes no further work
    torch.openreg.reset_device(0)
    assert x.cpu().tolist() == [1.0] * 3
    assert (x + 1).cpu().tolist() == [2.0] * 3


def test_blocking_launches_fail_on_the_line_that_launched(run_python):
    result = run_python(
        """
import torch, openreg_ops
x, i = torch.zeros(3, device="openreg"), torch.tensor([9], device="openreg")
try:
    torch.gather(x, 0, i)
except torch.AcceleratorError as error:
    print("here", "aten::gather" in str(error))
""",
        OPENREG_LAUNCH_BLOCKING="1",
    )
    assert (result.stdout.split(), result.returncode) == (["here", "True"], 0), result.stderr


def test_streams_are_independent_and_events_order_them(gate):
    x = torch.zeros(1024, device=DEVICE)
    torch.openreg.synchronize()
    slow, fast = torch.openreg.Stream(priority=0), torch.openreg.Stream(priority=-3)
    with torch.openreg.stream(slow):
        gate.close()
        x.fill_(1)
        done = slow.record_event()
    with torch.openreg.stream(fast):  # its work is ready as soon as the engine is, and overtakes the other's
        early = x + 1  # openreg-sanitizer: ignore[race]
        fast.wait_event(done)
        late = x + 1
        gate.open()
        assert early.cpu().tolist() == [1.0] * 1024
        assert late.cpu().tolist() == [2.0] * 1024
