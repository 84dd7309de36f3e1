# SPDX-License-Identifier: BSD-3-Clause
"""The modules and functions exist that code for PyTorch's own example backend calls.

A checklist: each section opens with what such code relies on; test_stock_behavior.py goes on with tensors, messages
and operators.
"""

import gc
import inspect
import sys

import pytest
import torch

import torch_openreg

DEVICES = range(2)


@pytest.fixture(autouse=True)
def same_device_afterwards():
    yield
    torch.openreg.set_device(0)


# The device `openreg`, of which there are two by default; the module `torch.openreg`.


def test_there_are_two_devices_by_default():
    assert torch.openreg.is_available()
    assert torch.openreg.device_count() == len(DEVICES)
    assert torch.accelerator.current_accelerator().type == "openreg"
    assert torch.accelerator.device_count() == len(DEVICES)


@pytest.mark.covers("module.the module itself")
def test_the_module_has_three_names():
    import torch_openreg.openreg

    assert torch_openreg.openreg is torch.openreg
    assert sys.modules["torch_openreg.openreg"] is torch.openreg
    assert torch.get_device_module("openreg") is torch.openreg


FUNCTIONS = [
    "is_available",
    "init",
    "is_initialized",
    "device_count",
    "current_device",
    "set_device",
    "device",
    "manual_seed",
    "manual_seed_all",
    "seed_all",
    "initial_seed",
    "get_rng_state",
    "get_rng_state_all",
    "set_rng_state",
    "set_rng_state_all",
    "get_amp_supported_dtype",
    "empty_cache",
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "reset_accumulated_memory_stats",
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_module_has_the_function(name):
    assert callable(getattr(torch.openreg, name))
    assert name in torch.openreg.__all__


@pytest.mark.covers("module.init")
def test_init_is_seen():
    torch.openreg.init()
    assert torch.openreg.is_initialized()


@pytest.mark.covers("module.current_device")
def test_current_device_is_set_by_index_name_and_device():
    for wanted in (1, "openreg:0", torch.device("openreg:1")):
        torch.openreg.set_device(wanted)
        index = wanted if isinstance(wanted, int) else torch.device(wanted).index
        assert torch.openreg.current_device() == index
        assert torch.empty(1, device="openreg").device.index == index


def test_the_device_context_restores_and_none_does_nothing():
    with torch.openreg.device(1):
        assert torch.openreg.current_device() == 1
        with torch.openreg.device(None):
            assert torch.openreg.current_device() == 1
        with torch.openreg.device("openreg:0"):
            assert torch.openreg.current_device() == 0
        assert torch.openreg.current_device() == 1
    assert torch.openreg.current_device() == 0


# `torch_openreg._C`: `_get_device`, `_set_device`, `_exchangeDevice`, `_get_device_count`, `_get_default_generator`,
# `_init`.


def test_private_functions_of_the_native_module():
    from torch_openreg import _C

    _C._init()
    assert _C._get_device_count() == len(DEVICES)
    _C._set_device(1)
    assert _C._get_device() == 1
    assert _C._exchangeDevice(0) == 1
    assert _C._exchangeDevice(-1) == -1
    assert _C._get_device() == 0
    assert _C._isInBadFork() is False
    for index in DEVICES:
        generator = _C._get_default_generator(index)
        assert generator.device == torch.device("openreg", index)
        generator.manual_seed(41 + index)
        assert torch.openreg.default_generators[index].initial_seed() == 41 + index  # that one, not one like it


@pytest.mark.parametrize("index", [-1, 2, 5])
def test_a_generator_of_a_device_that_does_not_exist_is_refused(index):
    with pytest.raises(RuntimeError, match=f"openreg:{index}"):
        torch_openreg._C._get_default_generator(index)


# Seeds and states of the devices' generators, each independent of the others; replay of a state.


def test_seeds_and_states_of_every_device():
    torch.openreg.manual_seed_all(7)
    states = torch.openreg.get_rng_state_all()
    assert len(states) == len(DEVICES)
    first = [torch.rand(4, device=f"openreg:{index}").cpu() for index in DEVICES]
    torch.openreg.set_rng_state_all(states)
    again = [torch.rand(4, device=f"openreg:{index}").cpu() for index in DEVICES]
    for one, other in zip(first, again, strict=True):
        assert torch.equal(one, other)


def test_seeding_one_device_leaves_the_other_alone():
    torch.manual_seed(3)
    before = torch.openreg.get_rng_state("openreg:1")
    torch.openreg.manual_seed(11)
    assert torch.openreg.initial_seed() == 11
    assert torch.equal(torch.openreg.get_rng_state("openreg:1"), before)
    state = torch.openreg.get_rng_state("openreg:0")
    drawn = torch.rand(3, device="openreg:0").cpu()
    torch.openreg.set_rng_state(state, "openreg:0")
    assert torch.equal(torch.rand(3, device="openreg:0").cpu(), drawn)
    torch.openreg.seed_all()
    assert torch.openreg.default_generators[0].initial_seed() == torch.openreg.default_generators[1].initial_seed()


@pytest.mark.covers("module.manual_seed_all")
def test_torch_manual_seed_seeds_the_devices():
    torch.manual_seed(5)
    one = torch.randn(8, device="openreg").cpu()
    torch.manual_seed(5)
    assert torch.equal(torch.randn(8, device="openreg").cpu(), one)


# Mixed precision, memory statistics, the cache.


@pytest.mark.covers("module.get_amp_supported_dtype", "module.amp")
def test_mixed_precision_names():
    assert torch.float16 in torch.openreg.get_amp_supported_dtype()
    x = torch.ones(2, 2, device="openreg")
    with torch_openreg.openreg.amp.autocast():
        assert (x @ x).dtype is torch.float16


@pytest.mark.covers("module.memory_reserved")
def test_memory_statistics_follow_a_tensor():
    gc.collect()  # what earlier tests left in reference cycles
    torch.openreg.empty_cache()
    before = torch.openreg.memory_allocated()
    x = torch.empty(1 << 25, dtype=torch.uint8, device="openreg")  # large enough for a segment of its own
    assert torch.openreg.memory_allocated() - before == x.nbytes
    assert torch.openreg.max_memory_allocated() >= before + x.nbytes
    assert torch.openreg.memory_reserved() >= torch.openreg.memory_allocated()
    assert torch.openreg.memory_stats()["allocated_bytes.all.current"] == before + x.nbytes
    del x
    assert torch.openreg.memory_allocated() == before
    reserved = torch.openreg.memory_reserved()
    torch.openreg.empty_cache()
    assert torch.openreg.memory_reserved() < reserved


def test_stock_signatures():
    assert list(inspect.signature(torch.openreg.get_rng_state).parameters) == ["device"]
    assert list(inspect.signature(torch.openreg.set_rng_state).parameters) == [
        "new_state",
        "device",
    ]
