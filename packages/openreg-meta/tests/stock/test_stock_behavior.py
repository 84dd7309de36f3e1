# SPDX-License-Identifier: BSD-3-Clause
"""Code for PyTorch's own example backend finds the behavior that it relies on: tensors, messages, operators.

A checklist, as test_stock_names.py: each section opens with what such code relies on.
"""

from pathlib import Path

import pytest
import torch
from _platform import HAS_FORK, IS_LINUX
from torch import distributed
from torch.nn.attention import SDPBackend
from torch.nn.utils.rnn import pack_sequence

DEVICES = range(2)


# `Tensor.openreg()`, `Tensor.is_openreg`, the same on modules, storages and packed sequences; `DeviceType.OPENREG`,
# `ProfilerActivity.OPENREG`; `Tensor.pin_memory("openreg")`.


@pytest.mark.covers("registration.torch.utils.generate_methods_for_privateuse1_backend")
def test_tensors_storages_modules_and_sequences_move_by_name():
    x = torch.arange(4.0)
    assert not x.is_openreg
    y = x.openreg()
    assert y.is_openreg
    assert y.device == torch.device("openreg:0")
    assert x.openreg(1).device.index == 1
    assert torch.equal(y.cpu(), x)

    storage = x.untyped_storage().openreg()
    assert storage.is_openreg
    assert not x.untyped_storage().is_openreg
    with pytest.warns(UserWarning, match="TypedStorage"):
        assert x.storage().openreg().is_openreg

    module = torch.nn.Linear(2, 2).openreg()
    assert all(parameter.is_openreg for parameter in module.parameters())

    packed = pack_sequence([torch.arange(3.0), torch.arange(2.0)])
    assert not packed.is_openreg
    assert packed.openreg().is_openreg
    assert torch.equal(packed.openreg().data.cpu(), packed.data)


def test_enumerations_know_the_device():
    device_type = torch._C._autograd.DeviceType
    assert device_type.PrivateUse1 == device_type.OPENREG
    activity = torch.profiler.ProfilerActivity
    assert activity.PrivateUse1 == activity.OPENREG
    assert activity.OPENREG in torch.profiler.supported_activities()


def test_pinned_memory():
    with pytest.warns(DeprecationWarning, match="device"):
        pinned = torch.arange(4.0).pin_memory("openreg")
    assert pinned.is_pinned()
    assert torch.equal(pinned, torch.arange(4.0))
    assert not torch.arange(4.0).is_pinned()


# An index out of range says "The device index is out of range".


@pytest.mark.parametrize(
    "use",
    [
        lambda: torch.openreg.set_device(2),
        lambda: torch.empty(1, device="openreg:2"),
        lambda: torch.ones(1).to("openreg:2"),
        lambda: torch.openreg.device("openreg:2").__enter__(),
    ],
    ids=["set_device", "empty", "to", "context"],
)
def test_an_index_out_of_range_says_so(use):
    with pytest.raises(RuntimeError, match="out of range"):
        use()
    assert torch.ones(2, device="openreg:1").sum().item() == 2


# Event times without timing enabled raise `ValueError` with PyTorch's text.


def test_event_times_need_timing():
    start, end = torch.Event("openreg"), torch.Event("openreg")
    start.record()
    end.record()
    end.synchronize()
    with pytest.raises(ValueError, match="enable_timing=True"):
        start.elapsed_time(end)


# A forked child that uses the device raises an error that begins "Cannot re-initialize OpenReg in forked subprocess".

FORKED = """
import os, torch
x = torch.ones(2, device="openreg")
child = os.fork()
if child == 0:
    code = 1
    try:
        torch.ones(2, device="openreg")
    except RuntimeError as error:
        text = "Cannot re-initialize OpenReg in forked subprocess"
        code = 0 if str(error).startswith(text) else 2
    os._exit(code)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), x.sum().item())
"""


@pytest.mark.skipif(not HAS_FORK, reason="this system has no fork")
def test_a_forked_child_gets_an_error(python):
    result = python(FORKED)
    assert result.stdout == "0 2.0\n", result.stderr


# Autograd's device threads are named `pt_autograd_<i>`.


@pytest.mark.covers("guard.deviceCount")
@pytest.mark.skipif(not IS_LINUX, reason="reads thread names from /proc")
def test_autograd_threads_have_their_names():
    x = torch.ones(2, device="openreg:1", requires_grad=True)
    (x * 2).sum().backward()
    names = {path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")}
    assert {f"pt_autograd_{index}" for index in DEVICES} <= names


# `torch.ops.openreg.custom_abs`, `custom_autograd_fn_returns_self` and `custom_autograd_fn_aliasing` (identity forward,
# gradient scaled by 0.5); `torch._fused_sdp_choice` answers "overrideable".


def test_the_custom_operator_computes_absolute_values():
    x = torch.tensor([-1.0, 0.0, 2.0], device="openreg:1")
    y = torch.ops.openreg.custom_abs(x)
    assert y.device == x.device
    assert y.tolist() == [1, 0, 2]


@pytest.mark.parametrize("name", ["custom_autograd_fn_returns_self", "custom_autograd_fn_aliasing"])
def test_the_custom_functions_are_the_identity_and_halve_the_gradient(name):
    x = torch.tensor([-1.0, 2.0], device="openreg", requires_grad=True)
    y = getattr(torch.ops.openreg, name)(x)
    assert y.tolist() == [-1, 2]
    assert y.data_ptr() == x.data_ptr()
    y.sum().backward()
    assert x.grad.tolist() == [0.5, 0.5]


def test_attention_is_the_backends_own_and_right():
    torch.manual_seed(0)
    on_host = [torch.randn(2, 3, 5, 8) for _ in "qkv"]
    on_device = [x.to("openreg") for x in on_host]
    assert torch._fused_sdp_choice(*on_device) == SDPBackend.OVERRIDEABLE.value
    attention = torch.nn.functional.scaled_dot_product_attention
    torch.testing.assert_close(attention(*on_device).cpu(), attention(*on_host))


# Tensor metadata of the backend survives `torch.save` and `torch.load` on the device and is dropped on the CPU.


def test_metadata_of_the_backend_survives_in_files_of_the_device_only(tmp_path):
    x = torch.arange(4.0, device="openreg:1")
    torch.openreg.set_resident(x)
    torch.save(x, tmp_path / "x.pt")
    again = torch.load(tmp_path / "x.pt")
    assert again.device == x.device
    assert torch.openreg.is_resident(again)
    on_host = torch.load(tmp_path / "x.pt", map_location="cpu")
    assert torch._utils.get_tensor_metadata(on_host) == {}
    assert not torch.openreg.is_resident(on_host.openreg(1))
    assert torch.equal(on_host, torch.arange(4.0))


# Kept free for later packages: `torch.compile(backend="openreg")` and the process-group backend `occl`.


def test_the_compilers_name_is_free():
    assert "openreg" not in torch._dynamo.list_backends(exclude_tags=())
    with pytest.raises(torch._dynamo.exc.InvalidBackend, match="'openreg'"):
        torch.compile(torch.neg, backend="openreg")(torch.ones(2))


def test_the_process_groups_name_is_free():
    assert "occl" not in distributed.Backend.backend_list
    assert not distributed.is_backend_available("occl")


# Where PyTorch's example has a gap: `abs` beyond float and contiguous, a cache that is emptied (test_stock_names.py),
# memory kept for a stream that uses it (test_memory.py), every dtype through DLPack (test_dlpack.py).


@pytest.mark.parametrize(
    "dtype", [torch.int8, torch.int64, torch.float16, torch.bfloat16, torch.float64, torch.complex64]
)
def test_absolute_values_of_every_dtype_and_layout(dtype):
    x = torch.arange(-6, 6).reshape(3, 4).to(dtype)
    for view in (x, x.t(), x[:, ::2], x[1:1]):
        assert torch.equal(torch.abs(view.openreg()).cpu(), torch.abs(view))
        on_device = x.openreg().as_strided(view.size(), view.stride(), view.storage_offset())
        assert torch.equal(torch.abs(on_device).cpu(), torch.abs(view))
