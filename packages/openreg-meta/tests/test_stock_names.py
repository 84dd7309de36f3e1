# SPDX-License-Identifier: BSD-3-Clause
"""The names that code written for PyTorch's own example backend uses."""

import gc
import inspect
import sys
from pathlib import Path

import pytest
import torch
from _platform import HAS_FORK, IS_LINUX
from torch.nn.utils.rnn import pack_sequence

import torch_openreg

DEVICES = range(2)


@pytest.fixture(autouse=True)
def same_device_afterwards():
    yield
    torch.openreg.set_device(0)


def test_there_are_two_devices_by_default():
    assert torch.openreg.is_available()
    assert torch.openreg.device_count() == len(DEVICES)
    assert torch.accelerator.current_accelerator().type == "openreg"
    assert torch.accelerator.device_count() == len(DEVICES)


def test_the_module_has_three_names():
    import torch_openreg.openreg

    assert torch_openreg.openreg is torch.openreg
    assert sys.modules["torch_openreg.openreg"] is torch.openreg
    assert torch.get_device_module("openreg") is torch.openreg


def test_init_is_seen():
    torch.openreg.init()
    assert torch.openreg.is_initialized()


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
        assert generator is not None
        assert generator.initial_seed() == torch.openreg.default_generators[index].initial_seed()


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


def test_torch_manual_seed_seeds_the_devices():
    torch.manual_seed(5)
    one = torch.randn(8, device="openreg").cpu()
    torch.manual_seed(5)
    assert torch.equal(torch.randn(8, device="openreg").cpu(), one)


def test_mixed_precision_names():
    assert torch.float16 in torch.openreg.get_amp_supported_dtype()
    x = torch.ones(2, 2, device="openreg")
    with torch_openreg.openreg.amp.autocast():
        assert (x @ x).dtype is torch.float16


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
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        assert x.storage().openreg().is_openreg

    module = torch.nn.Linear(2, 2).openreg()
    assert all(parameter.is_openreg for parameter in module.parameters())

    packed = pack_sequence([torch.arange(3.0), torch.arange(2.0)])
    assert not packed.is_openreg
    assert packed.openreg().is_openreg
    assert torch.equal(packed.openreg().data.cpu(), packed.data)


def test_enumerations_know_the_device():
    assert torch.profiler.ProfilerActivity.OPENREG is not None
    assert torch._C._autograd.DeviceType.OPENREG is not None


def test_pinned_memory():
    with pytest.warns(DeprecationWarning, match="device"):
        pinned = torch.arange(4.0).pin_memory("openreg")
    assert pinned.is_pinned()
    assert torch.equal(pinned, torch.arange(4.0))
    assert not torch.arange(4.0).is_pinned()


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
    with pytest.raises(RuntimeError, match="The device index is out of range"):
        use()
    assert torch.ones(2, device="openreg:1").sum().item() == 2


def test_event_times_need_timing():
    start, end = torch.Event("openreg"), torch.Event("openreg")
    start.record()
    end.record()
    end.synchronize()
    with pytest.raises(ValueError, match="must be created with argument 'enable_timing=True'"):
        start.elapsed_time(end)


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


@pytest.mark.skipif(not IS_LINUX, reason="reads thread names from /proc")
def test_autograd_threads_have_their_names():
    x = torch.ones(2, device="openreg:1", requires_grad=True)
    (x * 2).sum().backward()
    names = {path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")}
    assert {f"pt_autograd_{index}" for index in DEVICES} <= names


def test_stock_signatures():
    assert list(inspect.signature(torch.openreg.get_rng_state).parameters) == ["device"]
    assert list(inspect.signature(torch.openreg.set_rng_state).parameters) == [
        "new_state",
        "device",
    ]
