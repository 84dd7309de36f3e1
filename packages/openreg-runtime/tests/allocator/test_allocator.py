# SPDX-License-Identifier: BSD-3-Clause
"""The caching allocator reuses, splits, counts and releases device memory, tested through storages."""

import itertools
import random

import pytest
import torch
from driver.conftest import find_library
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openreg_runtime import openreg

pytestmark = pytest.mark.usefixtures("clean_device")

KIB = 1 << 10
MIB = 1 << 20


def allocate(size, device="openreg:0"):
    return torch.UntypedStorage(size, device=device)


@pytest.mark.covers("module.memory_allocated")
def test_memory_is_counted_on_its_device_in_blocks_of_512_bytes():
    before = [openreg.memory_allocated(device) for device in range(2)]
    small, large = allocate(1, "openreg:1"), allocate(513, "openreg:1")
    assert small.device == large.device == torch.device("openreg:1")
    assert small.nbytes() == 1
    assert openreg.memory_allocated(0) == before[0]
    assert openreg.memory_allocated(1) == before[1] + 512 + 1024
    stats = openreg.memory_stats(1)
    assert stats["requested_bytes.all.current"] == 514
    assert stats["allocation.small_pool.current"] == 2
    del small, large
    assert openreg.memory_allocated(1) == before[1]


@pytest.mark.covers("allocator.allocate")
def test_memory_comes_from_the_current_device_unless_one_is_named():
    with openreg.device(1):
        assert allocate(8, "openreg").device.index == 1
        assert allocate(8, "openreg:0").device.index == 0
        assert openreg.current_device() == 1


def test_an_empty_storage_takes_no_memory():
    before = openreg.memory_stats()
    storage = allocate(0)
    assert storage.data_ptr() == 0
    assert openreg.memory_stats() == before


def test_freed_memory_is_reused_at_once_by_its_stream_even_while_it_works(gate):
    gate.close()
    storage = allocate(3000)
    address = storage.data_ptr()
    del storage
    again = allocate(3000)
    assert again.data_ptr() == address
    assert not openreg.current_stream().query()


def test_freed_memory_of_a_stream_is_not_given_to_another():
    storage = allocate(3000)
    address = storage.data_ptr()
    del storage
    with openreg.stream(openreg.Stream()):
        other = allocate(3000)
        assert other.data_ptr() != address
        del other
    assert allocate(3000).data_ptr() == address


def test_blocks_do_not_overlap_and_neighbors_join_when_freed():
    storages = [allocate(size) for size in (512, 1024, 512, 2048)]
    ranges = sorted((s.data_ptr(), s.data_ptr() + s.nbytes()) for s in storages)
    assert all(low[1] <= high[0] for low, high in itertools.pairwise(ranges))
    first = ranges[0][0]
    del storages
    assert openreg.memory_stats()["inactive_split.all.current"] == 0
    assert allocate(1 * MIB).data_ptr() == first  # all of it is one block again


@pytest.mark.covers("module.empty_cache")
def test_a_cached_segment_goes_back_when_the_cache_is_emptied():
    openreg.empty_cache()
    free = openreg.mem_get_info()[0]
    storage = allocate(30 * MIB)
    assert openreg.memory_reserved() >= 30 * MIB
    assert openreg.mem_get_info()[0] <= free - 30 * MIB
    openreg.empty_cache()
    assert openreg.memory_reserved() >= 30 * MIB  # it is in use
    del storage
    assert openreg.memory_reserved() >= 30 * MIB  # it is cached
    openreg.empty_cache()
    assert openreg.memory_reserved() == 0
    assert openreg.mem_get_info()[0] == free
    stats = openreg.memory_stats()
    assert stats["num_device_alloc"] == stats["num_device_free"] > 0


@pytest.mark.covers("module.empty_cache")
def test_emptying_the_cache_waits_for_work_that_uses_it(gate):
    storage = allocate(30 * MIB)
    gate.close()
    del storage
    gate.open_soon()
    openreg.empty_cache()
    assert gate.is_open
    assert openreg.current_stream().query()
    assert openreg.memory_reserved() == 0


@pytest.mark.covers(
    "module.max_memory_allocated",
    "module.max_memory_reserved",
    "module.reset_peak_memory_stats",
    "module.reset_accumulated_memory_stats",
)
def test_peaks_and_sums_start_anew():
    openreg.reset_peak_memory_stats()
    base = openreg.memory_allocated()
    storage = allocate(5 * MIB)
    del storage
    assert openreg.max_memory_allocated() == base + 5 * MIB
    assert openreg.max_memory_reserved() >= 5 * MIB
    openreg.reset_peak_memory_stats()
    assert openreg.max_memory_allocated() == base
    assert openreg.memory_stats()["allocation.all.allocated"] > 0
    openreg.reset_accumulated_memory_stats()
    stats = openreg.memory_stats()
    assert stats["allocation.all.allocated"] == stats["allocation.all.freed"] == 0
    assert stats["num_device_alloc"] == 0


@pytest.mark.covers("module.mem_get_info", "device_allocator.getMemoryInfo")
def test_free_memory_and_capacity_are_what_the_driver_says(driver):
    with openreg.device(1):
        assert openreg.mem_get_info(1) == driver.memory_info()
    assert openreg.current_device() == 0


def invariants(stats, live):
    for pool in ("all", "small_pool", "large_pool"):
        allocated = stats[f"allocated_bytes.{pool}.current"]
        active = stats[f"active_bytes.{pool}.current"]
        reserved = stats[f"reserved_bytes.{pool}.current"]
        assert 0 <= stats[f"requested_bytes.{pool}.current"] <= allocated <= active <= reserved
        assert stats[f"inactive_split_bytes.{pool}.current"] <= reserved - active
        assert (stats[f"segment.{pool}.current"] > 0) == (reserved > 0)
        for name in ("allocation", "segment", "active", "inactive_split"):
            counter = f"{name}.{pool}"
            assert stats[f"{counter}.peak"] >= stats[f"{counter}.current"] >= 0
            made, gone = stats[f"{counter}.allocated"], stats[f"{counter}.freed"]
            assert made - gone == stats[f"{counter}.current"]
    for key in ("allocation", "allocated_bytes", "reserved_bytes", "active_bytes"):
        parts = [stats[f"{key}.{pool}.current"] for pool in ("small_pool", "large_pool")]
        assert sum(parts) == stats[f"{key}.all.current"]
    assert stats["allocation.all.current"] == len(live)
    assert stats["requested_bytes.all.current"] == sum(s.nbytes() for s in live)


SIZES = st.one_of(st.integers(1, 4 * KIB), st.integers(1, 3 * MIB), st.sampled_from([MIB, MIB + 1, 10 * MIB, 21 * MIB]))
STEPS = st.lists(st.tuples(SIZES, st.integers(0, 2), st.integers(0, 10**6)), max_size=40)


@pytest.mark.covers("device_allocator.getDeviceStats")
@settings(
    max_examples=40, deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(steps=STEPS)
def test_statistics_agree_with_each_other_and_with_a_model(steps):
    openreg.empty_cache()
    openreg.reset_accumulated_memory_stats()
    streams = [openreg.default_stream(), openreg.Stream()]
    live = []
    for size, action, choice in steps:
        if action == 2 and live:
            live.pop(choice % len(live))
        else:
            with openreg.stream(streams[action % 2]):
                live.append(allocate(size))
        ranges = sorted((s.data_ptr(), s.data_ptr() + s.nbytes()) for s in live)
        assert all(low[1] <= high[0] for low, high in itertools.pairwise(ranges))
        invariants(openreg.memory_stats(), live)
    live.clear()
    invariants(openreg.memory_stats(), live)
    openreg.empty_cache()
    assert openreg.memory_reserved() == 0
    assert openreg.memory_stats()["active_bytes.all.current"] == 0


def test_contents_survive_the_life_of_their_neighbors(driver):
    choose = random.Random(7)
    live = {}
    for number in range(300):
        if live and choose.random() < 0.45:
            storage, text = live.pop(choose.choice(list(live)))
            assert driver.download(storage.data_ptr(), len(text)) == text
        else:
            storage = allocate(choose.choice([40, 600, 70 * KIB, 2 * MIB]))
            text = bytes([number % 256]) * min(storage.nbytes(), 64)
            driver.upload(storage.data_ptr(), text)
            live[number] = storage, text
    for storage, text in live.values():
        assert driver.download(storage.data_ptr(), len(text)) == text


SMALL_DEVICE = {"OPENREG_DEVICE_MEMORY": "64MiB"}


@pytest.mark.covers("allocator.allocate", "registration.c10::OutOfMemoryError")
def test_out_of_memory_is_pytorchs_error_and_says_what_to_do(succeed):
    succeed(
        """
        import torch, openreg_runtime
        kept = torch.UntypedStorage(20 << 20, device="openreg:1")
        try:
            torch.UntypedStorage(50 << 20, device="openreg:1")
        except torch.OutOfMemoryError as error:
            text = str(error)
        for part in ("Tried to allocate 50.00 MiB", "openreg:1", "total capacity of 64.00 MiB",
                     "44.00 MiB is free", "20.00 MiB is allocated", "OPENREG_DEVICE_MEMORY",
                     "torch.openreg.empty_cache()"):
            assert part in text, (part, text)
        stats = torch.openreg.memory_stats(1)
        assert (stats["num_ooms"], stats["num_alloc_retries"]) == (1, 1)
        torch.UntypedStorage(50 << 20, device="openreg:0")
        torch.UntypedStorage(44 << 20, device="openreg:1")
        """,
        env=SMALL_DEVICE,
    )


def test_a_thousand_times_out_of_memory_leaves_everything_as_it_was(succeed):
    succeed(
        f"""
        import ctypes, torch, openreg_runtime
        copy = ctypes.CDLL({str(find_library())!r}).orMemcpy
        copy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        texts = [bytes([number]) * (7 << 20) for number in range(1, 5)]
        kept = [torch.UntypedStorage(len(text), device="openreg") for text in texts]
        for storage, text in zip(kept, texts):
            assert copy(storage.data_ptr(), text, len(text), 4) == 0
        before = torch.openreg.memory_stats(), torch.openreg.mem_get_info()
        for size in (64 << 20, 1 << 40, (1 << 62) + 1, 2**63 - 1) * 250:
            try:
                torch.UntypedStorage(size, device="openreg")
            except torch.OutOfMemoryError:
                continue
            raise AssertionError(size)
        after = torch.openreg.memory_stats(), torch.openreg.mem_get_info()
        for name in ("num_ooms", "num_alloc_retries", "num_sync_all_streams"):
            assert after[0].pop(name) - before[0].pop(name) == 1000, name
        assert after == before
        for storage, text in zip(kept, texts):
            back = ctypes.create_string_buffer(len(text))
            assert copy(back, storage.data_ptr(), len(text), 4) == 0
            assert back.raw == text
        del kept, storage
        torch.openreg.empty_cache()
        assert torch.openreg.mem_get_info() == (64 << 20, 64 << 20)
        torch.UntypedStorage(64 << 20, device="openreg")
        """,
        env=SMALL_DEVICE,
    )


def test_the_cache_is_given_back_before_an_allocation_fails(succeed):
    succeed(
        """
        import torch, openreg_runtime
        for _ in range(5):
            for size in (40, 50, 60):
                storage = torch.UntypedStorage(size << 20, device="openreg")
                torch.openreg._sleep(2_000_000)
                del storage
        assert torch.openreg.memory_stats()["num_ooms"] == 0
        assert torch.openreg.memory_stats()["num_alloc_retries"] > 0
        """,
        env=SMALL_DEVICE,
    )


def test_the_whole_capacity_can_be_allocated(succeed):
    succeed(
        """
        import torch, openreg_runtime
        large = torch.UntypedStorage(62 << 20, device="openreg")
        small = [torch.UntypedStorage(512, device="openreg") for _ in range(4096)]
        assert torch.openreg.memory_allocated() == 64 << 20
        try:
            torch.UntypedStorage(1, device="openreg")
        except torch.OutOfMemoryError:
            pass
        else:
            raise AssertionError("more than the capacity")
        """,
        env=SMALL_DEVICE,
    )


def test_less_room_than_a_usual_segment_still_serves_small_requests(succeed):
    succeed(
        """
        import torch, openreg_runtime
        large = [torch.UntypedStorage(size << 19, device="openreg") for size in (120, 5)]
        small = [torch.UntypedStorage(512, device="openreg") for _ in range(100)]
        assert torch.openreg.memory_stats()["num_ooms"] == 0
        """,
        env=SMALL_DEVICE,
    )
