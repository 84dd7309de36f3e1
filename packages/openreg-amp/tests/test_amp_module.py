# SPDX-License-Identifier: BSD-3-Clause
"""torch.openreg.amp and the state of autocast for this device."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import openreg_amp


def state():
    return torch.is_autocast_enabled("openreg"), torch.get_autocast_dtype("openreg")


def test_the_package_extends_the_device_module():
    assert torch.openreg.amp is openreg_amp.amp
    assert torch.openreg.get_amp_supported_dtype() == [torch.float16, torch.bfloat16]
    assert torch.openreg.amp.get_amp_supported_dtype() == torch.openreg.get_amp_supported_dtype()


def test_supported_types_cannot_be_changed_by_a_caller():
    torch.openreg.get_amp_supported_dtype().clear()
    assert torch.openreg.get_amp_supported_dtype() == [torch.float16, torch.bfloat16]


def test_autocast_is_available_and_off():
    assert torch.amp.is_autocast_available("openreg")
    assert state() == (False, torch.float16)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_contexts_nest_and_restore(dtype):
    before = state()
    with torch.autocast("openreg", dtype=dtype):
        assert state() == (True, dtype)
        with torch.autocast("openreg", enabled=False):
            assert not state()[0]
        with torch.autocast("openreg", dtype=torch.bfloat16):
            assert state() == (True, torch.bfloat16)
        assert state() == (True, dtype)
    assert state() == before


def test_an_exception_restores_the_state():
    before = state()
    with pytest.raises(KeyError), torch.autocast("openreg", dtype=torch.bfloat16):
        raise KeyError
    assert state() == before


def test_an_unsupported_type_warns_and_leaves_autocast_off():
    with pytest.warns(UserWarning, match=r"openreg.*torch\.float16, torch\.bfloat16"):
        context = torch.autocast("openreg", dtype=torch.float64)
    with context:
        assert not torch.is_autocast_enabled("openreg")


def test_the_devices_own_context_needs_no_device():
    with torch.openreg.amp.autocast():
        assert state() == (True, torch.float16)
    with torch.openreg.amp.autocast(dtype=torch.bfloat16, cache_enabled=False):
        assert state() == (True, torch.bfloat16)
        assert not torch.is_autocast_cache_enabled()
    with torch.openreg.amp.autocast(enabled=False):
        assert not state()[0]
    assert isinstance(torch.openreg.amp.autocast(), torch.amp.autocast_mode.autocast)


def test_the_context_decorates_functions():
    @torch.openreg.amp.autocast(dtype=torch.bfloat16)
    def inside():
        return state()

    assert inside() == (True, torch.bfloat16)
    assert not state()[0]


def test_the_state_belongs_to_the_device():
    with torch.autocast("openreg"):
        assert not torch.is_autocast_enabled("cpu")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not torch.is_autocast_enabled("openreg")


def test_autograd_functions_get_the_types_they_ask_for():
    seen = {}

    class Doubled(torch.autograd.Function):
        @staticmethod
        @torch.openreg.amp.custom_fwd(cast_inputs=torch.float32)
        def forward(ctx, x):
            seen["forward"] = x.dtype, torch.is_autocast_enabled("openreg")
            return x * 2

        @staticmethod
        @torch.openreg.amp.custom_bwd
        def backward(ctx, gradient):
            seen["backward"] = torch.is_autocast_enabled("openreg")
            return gradient * 2

    with FakeTensorMode():
        x = torch.empty(3, dtype=torch.float16, device="openreg", requires_grad=True)
        with torch.autocast("openreg"):
            loss = Doubled.apply(x).sum()
        loss.backward()
    assert seen == {"forward": (torch.float32, False), "backward": False}
    assert x.grad.dtype is torch.float16


def test_the_scaler_is_for_this_device():
    scaler = torch.openreg.amp.GradScaler(init_scale=8.0)
    assert isinstance(scaler, torch.amp.GradScaler)
    assert scaler.is_enabled()
    assert scaler._device == "openreg"
    assert scaler.get_scale() == 8.0
    assert not torch.openreg.amp.GradScaler(enabled=False).is_enabled()
