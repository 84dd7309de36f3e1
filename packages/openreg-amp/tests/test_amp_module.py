# SPDX-License-Identifier: BSD-3-Clause
"""The functions and contexts of torch.openreg.amp work, and each device type has an autocast state of its own."""

import threading
import warnings

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import openreg_amp

pytestmark = pytest.mark.every_subset


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


@pytest.mark.covers("module.get_amp_supported_dtype")
def test_an_unsupported_type_warns_and_leaves_autocast_off():
    with pytest.warns(UserWarning, match=r"openreg.*torch\.float16, torch\.bfloat16"):
        context = torch.autocast("openreg", dtype=torch.float64)
    with context:
        assert not torch.is_autocast_enabled("openreg")


def test_an_unsupported_type_is_no_matter_where_autocast_is_disabled():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with torch.autocast("openreg", dtype=torch.float64, enabled=False):
            assert not state()[0]


def test_an_unsupported_type_inside_a_context_disables_it_there():
    with torch.autocast("openreg"):
        with pytest.warns(UserWarning, match="autocast"):
            inner = torch.openreg.amp.autocast(dtype=torch.float32)
        with inner:
            assert not state()[0]
        assert state() == (True, torch.float16)


def test_the_default_type_can_be_set():
    torch.set_autocast_dtype("openreg", torch.bfloat16)
    try:
        assert state() == (False, torch.bfloat16)
        with torch.autocast("openreg"):
            assert state() == (True, torch.bfloat16)
    finally:
        torch.set_autocast_dtype("openreg", torch.float16)


def test_autocast_can_be_enabled_without_a_context():
    torch.set_autocast_enabled("openreg", True)
    try:
        assert state() == (True, torch.float16)
    finally:
        torch.set_autocast_enabled("openreg", False)
    assert state() == (False, torch.float16)


@pytest.mark.covers("module.amp")
def test_the_devices_own_context_needs_no_device():
    with torch.openreg.amp.autocast():
        assert state() == (True, torch.float16)
    with torch.openreg.amp.autocast(dtype=torch.bfloat16, cache_enabled=False):
        assert state() == (True, torch.bfloat16)
        assert not torch.is_autocast_cache_enabled()
        with torch.autocast("openreg"):
            assert state() == (True, torch.bfloat16)
            assert not torch.is_autocast_cache_enabled()
        with torch.openreg.amp.autocast():
            assert state() == (True, torch.float16)
            assert torch.is_autocast_cache_enabled()
    with torch.openreg.amp.autocast(enabled=False):
        assert not state()[0]
    assert isinstance(torch.openreg.amp.autocast(), torch.amp.autocast_mode.autocast)


def test_the_context_decorates_functions():
    @torch.openreg.amp.autocast(dtype=torch.bfloat16)
    def inside():
        return state()

    assert inside() == (True, torch.bfloat16)
    assert not state()[0]


@pytest.mark.parametrize("make", [torch.openreg.amp.autocast, lambda **named: torch.autocast("openreg", **named)])
def test_the_context_decorates_methods(make):
    class Model:
        @make(dtype=torch.bfloat16)
        def forward(self, x, *, extra):
            return x, extra, state()

    assert Model().forward(1, extra=2) == (1, 2, (True, torch.bfloat16))
    assert not state()[0]


def test_a_decorated_generator_runs_outside_like_that_of_any_device():
    @torch.openreg.amp.autocast()
    def ours():
        yield torch.is_autocast_enabled("openreg")

    @torch.autocast("cpu", dtype=torch.bfloat16)
    def theirs():
        yield torch.is_autocast_enabled("cpu")

    assert list(ours()) == list(theirs()) == [False]


def test_the_state_belongs_to_the_device():
    with torch.autocast("openreg"):
        assert not torch.is_autocast_enabled("cpu")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not torch.is_autocast_enabled("openreg")


def test_the_state_belongs_to_the_thread():
    seen = {}

    def other():
        seen["at first"] = state()
        with torch.autocast("openreg", dtype=torch.float16):
            entered.set()
            left.wait(240)
            seen["inside"] = state()

    entered, left = threading.Event(), threading.Event()
    thread = threading.Thread(target=other)
    with torch.autocast("openreg", dtype=torch.bfloat16):
        thread.start()
        assert entered.wait(240)
        assert state() == (True, torch.bfloat16)
    left.set()
    thread.join()
    assert seen == {"at first": (False, torch.float16), "inside": (True, torch.float16)}


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


def test_autograd_functions_without_a_type_keep_the_state():
    seen = []

    class Doubled(torch.autograd.Function):
        @staticmethod
        @torch.openreg.amp.custom_fwd
        def forward(ctx, x):
            seen.append((x.dtype, *state()))
            return x * 2

        @staticmethod
        @torch.openreg.amp.custom_bwd
        def backward(ctx, gradient):
            seen.append((gradient.dtype, *state()))
            return gradient * 2

    with FakeTensorMode():
        x = torch.empty(3, device="openreg", requires_grad=True)
        with torch.autocast("openreg", dtype=torch.bfloat16):
            loss = Doubled.apply(x).sum()
        loss.backward()
        Doubled.apply(x)
    inside = (torch.float32, True, torch.bfloat16)
    assert seen == [inside, inside, (torch.float32, False, torch.float16)]


def test_inputs_are_cast_under_autocast_alone_and_on_this_device_alone():
    @torch.openreg.amp.custom_fwd(cast_inputs=torch.float16)
    def types(ctx, *tensors):
        return [tensor.dtype for tensor in tensors]

    class Context:
        pass

    with FakeTensorMode():
        ours, count = torch.empty(1, device="openreg"), torch.empty(1, dtype=torch.int64, device="openreg")
        tensors = (ours, ours.double(), count, torch.empty(1))
        assert types(Context(), *tensors) == [tensor.dtype for tensor in tensors]
        with torch.autocast("openreg"):
            assert types(Context(), *tensors) == [torch.float16, torch.float64, torch.int64, torch.float32]


@pytest.mark.covers("module.amp")
def test_the_scaler_is_for_this_device():
    scaler = torch.openreg.amp.GradScaler(init_scale=8.0)
    assert isinstance(scaler, torch.amp.GradScaler)
    assert scaler.is_enabled()
    assert scaler._device == "openreg"
    assert scaler.get_scale() == 8.0
    assert not torch.openreg.amp.GradScaler(enabled=False).is_enabled()
