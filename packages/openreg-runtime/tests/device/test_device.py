# SPDX-License-Identifier: BSD-3-Clause
"""Devices can be counted, selected and described, and an index that does not exist is refused."""

import threading

import pytest
import torch

from openreg_runtime import _C, openreg
from openreg_runtime.openreg import _device

pytestmark = pytest.mark.usefixtures("clean_device")

# 256 and 300 would be valid in the 8 bits of PyTorch's own index type.
OUT_OF_RANGE = [2, 127, 128, 256, 300, 2**40, -2, -1]

BY_INDEX = {
    "can_device_access_peer": lambda index: openreg.can_device_access_peer(0, index),
    "current_stream": openreg.current_stream,
    "default_stream": openreg.default_stream,
    "device_stats": openreg.device_stats,
    "exchange_device": openreg._exchange_device,
    "get_device_capability": openreg.get_device_capability,
    "get_device_name": openreg.get_device_name,
    "get_device_properties": openreg.get_device_properties,
    "get_rng_state": openreg.get_rng_state,
    "max_memory_allocated": openreg.max_memory_allocated,
    "max_memory_reserved": openreg.max_memory_reserved,
    "mem_get_info": openreg.mem_get_info,
    "memory_allocated": openreg.memory_allocated,
    "memory_reserved": openreg.memory_reserved,
    "memory_stats": openreg.memory_stats,
    "reset_accumulated_memory_stats": openreg.reset_accumulated_memory_stats,
    "reset_device": openreg.reset_device,
    "reset_peak_memory_stats": openreg.reset_peak_memory_stats,
    "set_rng_state": lambda index: openreg.set_rng_state(torch.zeros(16, dtype=torch.uint8), index),
    "synchronize": openreg.synchronize,
    "Stream": openreg.Stream,
    "_C._default_stream_id": _C._default_stream_id,
    "_C._get_default_generator": _C._get_default_generator,
    "_C._reset_device": _C._reset_device,
    "_C._set_device": _C._set_device,
}


@pytest.mark.parametrize("index", OUT_OF_RANGE)
@pytest.mark.parametrize("name", BY_INDEX)
def test_an_index_out_of_range_is_refused_with_the_range(name, index):
    with pytest.raises(RuntimeError) as error:
        BY_INDEX[name](index)
    assert f"openreg:{index}" in str(error.value)
    assert "openreg:0 to openreg:1" in str(error.value)
    assert "OPENREG_DEVICE_COUNT" in str(error.value)
    assert openreg.current_device() == 0


@pytest.mark.parametrize("choose", [openreg.set_device, openreg.device, openreg._maybe_exchange_device])
@pytest.mark.parametrize("index", [index for index in OUT_OF_RANGE if index >= 0])
def test_choosing_an_unknown_device_is_refused(choose, index):
    with pytest.raises(RuntimeError, match=f"openreg:{index}"):
        choose(index)
    assert openreg.current_device() == 0


@pytest.mark.covers("guard.setDevice")
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.UntypedStorage(8, device="openreg:7"),
        lambda: torch.Generator("openreg:7"),
        lambda: torch.Stream(device="openreg:7"),
        lambda: openreg.Stream("openreg:7"),
        lambda: openreg.set_device(torch.device("openreg:7")),
        lambda: torch.accelerator.set_device_index(7),
        lambda: torch.accelerator.synchronize(7),
        lambda: torch.accelerator.synchronize(-2),
        lambda: torch.accelerator.current_stream(7),
        lambda: torch.accelerator.memory_stats(7),
        lambda: torch.accelerator.get_memory_info(7),
        lambda: torch.accelerator.get_device_capability(7),
    ],
)
def test_pytorch_refuses_an_unknown_device_too(make):
    with pytest.raises(RuntimeError, match="out of range"):
        make()
    assert openreg.current_device() == 0


@pytest.mark.parametrize("device", ["cpu", "cuda:0", torch.device("meta")])
def test_another_type_of_device_is_refused(device):
    expected = rf"expected a device of type 'openreg', but got '{device}'; give an index, 'openreg:N' or None$"
    for function in (openreg.set_device, openreg.synchronize):
        with pytest.raises(ValueError, match=expected):
            function(device)


@pytest.mark.covers("module._utils._get_device_index")
def test_a_device_that_has_to_be_given_is_not_none():
    with pytest.raises(ValueError, match=r"but got None; give an index or 'openreg:N'$"):
        openreg._utils._get_device_index(None)
    assert openreg._utils._get_device_index(None, optional=True) == openreg.current_device()


@pytest.mark.parametrize("device", [1, "openreg:1", torch.device("openreg:1"), torch.device("openreg", 1)])
def test_a_device_is_an_index_a_string_or_a_torch_device(device):
    openreg.set_device(device)
    assert openreg.current_device() == 1
    assert torch.accelerator.current_device_index() == 1
    with openreg.device(0):
        assert openreg.current_stream(device).device_index == 1


@pytest.mark.covers("module.set_device")
@pytest.mark.parametrize("unchanged", [-1, -5, None, "openreg", torch.device("openreg")])
def test_what_names_no_device_leaves_the_current_one(unchanged):
    openreg.set_device(1)
    openreg.set_device(unchanged)
    assert openreg.current_device() == 1
    with openreg.device(unchanged):
        assert openreg.current_device() == 1
    assert openreg.current_device() == 1


@pytest.mark.covers("module.device")
def test_the_context_gives_the_device_before_back():
    with openreg.device(1):
        assert openreg.current_device() == 1
        with openreg.device("openreg:0"):
            assert openreg.current_device() == 0
        assert openreg.current_device() == 1
    assert openreg.current_device() == 0
    with pytest.raises(KeyError), openreg.device(1):
        raise KeyError
    assert openreg.current_device() == 0


def test_a_context_may_be_entered_inside_itself():
    context = openreg.device(1)
    with context:
        openreg.set_device(0)
        with context:
            assert openreg.current_device() == 1
        assert openreg.current_device() == 0
    assert openreg.current_device() == 0


@pytest.mark.covers("module.device_of")
def test_device_of_takes_the_device_of_an_object():
    with openreg.device_of(torch.UntypedStorage(8, device="openreg:1")):
        assert openreg.current_device() == 1
    with openreg.device_of(torch.zeros(1)):
        assert openreg.current_device() == 0


@pytest.mark.covers("module._exchange_device", "module._maybe_exchange_device")
def test_exchanging_gives_the_device_before():
    assert openreg._exchange_device(1) == 0
    assert openreg._exchange_device(0) == 1
    assert openreg._maybe_exchange_device(-1) == 0
    assert openreg._maybe_exchange_device(1) == 0
    assert openreg._maybe_exchange_device(-7) == 1
    assert openreg.current_device() == 1


def test_the_current_device_belongs_to_the_thread():
    openreg.set_device(1)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(openreg.current_device()))
    thread.start()
    thread.join()
    assert seen == [0]
    assert openreg.current_device() == 1


@pytest.mark.covers("module.get_device_properties", "module.get_device_name")
def test_properties_describe_the_device():
    properties = openreg.get_device_properties("openreg:1")
    assert properties.name == openreg.get_device_name(1) == "OpenReg simulated accelerator"
    assert properties.total_memory == openreg.mem_get_info(1)[1]
    assert properties.multi_processor_count >= 1
    assert (properties.major, properties.minor) >= (1, 0)


@pytest.mark.covers("module.get_device_capability", "module.is_bf16_supported", "guard.getDeviceCapability")
def test_the_capability_lists_dtypes_that_kernels_take():
    dtypes = openreg.get_device_capability()["supported_dtypes"]
    assert {torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64} <= set(dtypes)
    assert {torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4} <= set(dtypes)
    assert not {torch.bits8, torch.uint4} & set(dtypes)
    assert openreg.is_bf16_supported()
    assert openreg.is_bf16_supported(including_emulation=False)


@pytest.mark.covers("module.can_device_access_peer")
def test_devices_address_each_others_memory_but_not_as_peers_of_themselves():
    assert openreg.can_device_access_peer(0, 1)
    assert not openreg.can_device_access_peer("openreg:1", 1)


@pytest.mark.covers("module.device_stats")
def test_statistics_count_the_work_of_one_device(driver):
    openreg.reset_device(0)
    openreg.reset_device(1)
    storage = torch.UntypedStorage(1 << 20, device="openreg:1")
    with openreg.device(1):
        driver.upload(storage.data_ptr(), b"x" * 1000)
    openreg.synchronize(1)
    stats = openreg.device_stats(1)
    assert (stats.copies, stats.bytes_copied, stats.launches) == (1, 1000, 0)
    assert stats.allocated_bytes >= 1 << 20
    assert stats.peak_allocated_bytes >= stats.allocated_bytes
    assert openreg.device_stats(0).copies == 0
    openreg.reset_device(1)
    assert openreg.device_stats(1).copies == 0


@pytest.mark.covers("module._utils._get_device_index")
def test_a_location_to_load_to_means_the_current_device_unless_it_has_a_number():
    openreg.set_device(1)
    assert openreg._utils._get_device_index("openreg", True) == 1
    assert openreg._utils._get_device_index("openreg:0", True) == 0
    assert torch.serialization._validate_device("openreg", "openreg") == torch.device("openreg:1")
    with pytest.raises(RuntimeError, match="map_location"):
        torch.serialization._validate_device("openreg:5", "openreg")


@pytest.mark.covers("module._lazy_init")
def test_a_thread_waits_for_the_deferred_functions_that_another_one_runs():
    running, may_end = threading.Event(), threading.Event()

    def deferred():
        openreg._lazy_init()  # as the first use of the device in the function does
        running.set()
        may_end.wait()

    _device._queued_calls.append(deferred)
    thread = threading.Thread(target=openreg._lazy_init)
    thread.start()
    running.wait()
    is_free = _device._queue_lock.acquire(blocking=False)  # the lock for which _lazy_init() of this thread would wait
    may_end.set()
    thread.join()
    assert not is_free
