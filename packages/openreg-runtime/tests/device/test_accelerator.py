# SPDX-License-Identifier: BSD-3-Clause
"""Every function of the device-agnostic interface torch.accelerator works on the device."""

import pytest
import torch

from openreg_runtime import openreg

accelerator = torch.accelerator
pytestmark = pytest.mark.usefixtures("clean_device")

TESTED = {
    "current_accelerator", "current_device_index", "current_stream", "device_count", "device_index",
    "empty_cache", "empty_host_cache", "get_device_capability", "get_memory_info", "is_available",
    "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
    "memory_stats", "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_index",
    "set_stream", "synchronize",
}  # fmt: skip
DEPRECATED = {"current_device_idx", "set_device_idx"}
NOT_OFFERED = {"Graph"}


def test_this_file_knows_every_name_of_the_interface():
    assert set(accelerator.__all__) == TESTED | DEPRECATED | NOT_OFFERED


@pytest.mark.covers(
    "module.is_available",
    "module.device_count",
    "accelerator_hooks.isBuilt",
    "accelerator_hooks.isAvailable",
    "guard.deviceCount",
)
def test_openreg_is_the_accelerator():
    assert accelerator.is_available()
    assert accelerator.current_accelerator() == torch.device("openreg")
    assert accelerator.current_accelerator(check_available=True) == torch.device("openreg")
    assert accelerator.device_count() == openreg.device_count() == 2


@pytest.mark.covers("guard.type", "guard.exchangeDevice", "guard.getDevice", "guard.setDevice")
def test_devices_are_chosen():
    accelerator.set_device_index(1)
    assert accelerator.current_device_index() == openreg.current_device() == 1
    accelerator.set_device_index("openreg:0")
    assert accelerator.current_device_index() == 0
    with accelerator.device_index(1):
        assert openreg.current_device() == 1
    with accelerator.device_index(None):
        assert openreg.current_device() == 0
    assert openreg.current_device() == 0


def test_a_bare_index_means_the_accelerator():
    assert torch.device(1) == torch.device("openreg:1")


@pytest.mark.covers("guard.getStream")
def test_streams_are_set_and_read():
    stream = torch.Stream(device="openreg:1")
    accelerator.set_stream(stream)
    assert accelerator.current_device_index() == 1
    assert accelerator.current_stream() == stream
    assert accelerator.current_stream(0) == openreg.default_stream(0)


@pytest.mark.covers("guard.synchronizeDevice")
@pytest.mark.parametrize("device", [None, 0, "openreg", "openreg:0", torch.device("openreg:0")])
def test_synchronizing_waits_for_one_device(device, gate):
    openreg._sleep(40_000_000)  # a pause, because a gate would hold both devices
    gate.close(openreg.current_stream(1))
    accelerator.synchronize(device)
    assert openreg.current_stream(0).query()
    assert not openreg.current_stream(1).query()


def test_the_first_thing_synchronized_may_be_a_named_device(succeed):
    succeed("""
        import torch, openreg_runtime
        torch.openreg._sleep(100_000_000)
        torch.accelerator.synchronize(0)
        assert torch.openreg.current_stream(0).query()
    """)


def test_the_capability_is_a_table_of_dtypes():
    assert torch.float32 in accelerator.get_device_capability(1)["supported_dtypes"]


@pytest.mark.covers(
    "device_allocator.emptyCache",
    "device_allocator.resetAccumulatedStats",
    "device_allocator.resetPeakStats",
    "device_allocator.getMemoryInfo",
)
def test_memory_is_counted_and_released():
    accelerator.empty_cache()
    free, total = accelerator.get_memory_info()
    base = accelerator.memory_allocated()
    accelerator.reset_peak_memory_stats()
    storage = torch.UntypedStorage(30 << 20, device="openreg")
    assert accelerator.memory_allocated() == base + (30 << 20)
    assert accelerator.max_memory_allocated() == accelerator.memory_allocated()
    assert accelerator.memory_reserved() == accelerator.max_memory_reserved() >= 30 << 20
    assert accelerator.get_memory_info() == (free - (30 << 20), total)
    assert accelerator.memory_stats()["allocated_bytes.all.current"] == base + (30 << 20)
    del storage
    accelerator.empty_cache()
    assert accelerator.get_memory_info() == (free, total)
    assert accelerator.max_memory_reserved() >= 30 << 20
    accelerator.reset_accumulated_memory_stats()
    assert accelerator.memory_stats()["allocation.all.allocated"] == 0


@pytest.mark.covers("host_allocator.empty_cache")
def test_pinned_memory_is_released():
    accelerator.empty_host_cache()
    before = openreg.host_memory_stats()["allocated_bytes.current"]
    torch.ones(100).pin_memory()
    assert openreg.host_memory_stats()["allocated_bytes.current"] > before
    accelerator.empty_host_cache()
    assert openreg.host_memory_stats()["allocated_bytes.current"] == before


@pytest.mark.covers("device_allocator.initialized")
def test_before_first_use_there_are_no_statistics(succeed):
    succeed("""
        import torch, openreg_runtime
        assert torch.accelerator.memory_stats() == {}
        assert torch.accelerator.memory_allocated() == 0
        torch.accelerator.empty_cache()
    """)
