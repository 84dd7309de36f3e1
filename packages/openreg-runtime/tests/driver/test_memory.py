# SPDX-License-Identifier: BSD-3-Clause
"""Device memory is protected from the host and has an exact capacity. Pinned memory is accessible to both."""

from __future__ import annotations

import ctypes
import random
import signal
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ._platform import IS_POSIX, PAGE_SIZE
from .conftest import CAPACITY, MIB, PATIENCE, Gate, RunScript
from .device_api import Api, DriverError, Error, MemoryType

PAGE = PAGE_SIZE
posix_only = pytest.mark.skipif(not IS_POSIX, reason="ctypes turns an access violation into OSError on Windows")
linux_only = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")

# How the host may try to touch a device address, each in a process of its own.
ACCESSES = {
    "read": "ctypes.string_at(address, 1)",
    "write": "ctypes.memset(address, 1, 1)",
    "read the last byte": "ctypes.string_at(address + 4095, 1)",
    "read after free": "api.free(address); ctypes.string_at(address, 1)",
    "read what no one allocated": "ctypes.string_at(address + (1 << 20), 1)",
    "read while a kernel runs": """
running = threading.Event()
api.launch(None, lambda: running.set() or time.sleep(600))  # longer than this process lives
running.wait()
ctypes.string_at(address, 1)""",
}


@posix_only
@pytest.mark.parametrize("access", ACCESSES)
def test_a_host_access_faults(run_script: RunScript, access: str) -> None:
    done = run_script(f"address = api.malloc(4096)\nprint('before', flush=True)\n{ACCESSES[access]}")
    assert done.output.split() == ["before"], done.errors
    assert done.code in (-signal.SIGSEGV, -signal.SIGBUS)


def test_the_kernel_view_is_the_same_memory(api: Api) -> None:
    address = api.malloc(2 * PAGE)
    view = api.kernel_view(address)
    api.launch(None, lambda: ctypes.memset(view + PAGE - 2, 0x41, 4) and None)
    api.synchronize()
    assert api.download(address + PAGE - 2, 4) == b"AAAA"
    api.upload(address, b"from the host")
    seen: list[bytes] = []
    api.launch(None, lambda: seen.append(ctypes.string_at(view, 13)))
    api.synchronize()
    assert seen == [b"from the host"]
    api.free(address)


def test_one_offset_serves_all_devices(api: Api) -> None:
    addresses = []
    for device in range(2):
        api.set_device(device)
        addresses.append(api.malloc(PAGE))
        ctypes.memset(api.kernel_view(addresses[-1]), device + 1, PAGE)
    assert [api.download(address, 1) for address in addresses] == [b"\1", b"\2"]
    for address in addresses:
        api.free(address)


def test_capacity_is_exact(api: Api) -> None:
    assert api.memory_info() == (CAPACITY, CAPACITY)
    whole = api.malloc(CAPACITY)
    assert api.memory_info() == (0, CAPACITY)
    with pytest.raises(DriverError, match=rf"device 0 .*\b1 bytes.*\b0 of .*{CAPACITY}"):
        api.malloc(1)
    api.upload(whole + CAPACITY - 1, b"z")
    assert api.download(whole + CAPACITY - 1, 1) == b"z"
    api.free(whole)
    assert api.memory_info() == (CAPACITY, CAPACITY)


def test_an_exhausted_device_leaves_the_others_alone(api: Api) -> None:
    whole = api.malloc(CAPACITY)
    api.set_device(1)
    assert api.memory_info() == (CAPACITY, CAPACITY)
    other = api.malloc(CAPACITY)
    api.free(whole)  # whatever the current device is
    api.free(other)


@pytest.mark.parametrize("size", [1, PAGE - 1, PAGE, PAGE + 1, MIB - 1])
def test_sizes_round_up_to_pages(api: Api, size: int) -> None:
    address = api.malloc(size)
    assert address % 4096 == 0
    assert CAPACITY - api.memory_info()[0] == -(-size // PAGE) * PAGE
    api.free(address)


@pytest.mark.parametrize("size", [CAPACITY + 1, 1 << 40, (1 << 63) - 1, (1 << 64) - 4096, (1 << 64) - 1])
def test_out_of_memory_changes_nothing(api: Api, size: int) -> None:
    kept = api.malloc(PAGE)
    out = ctypes.c_void_p(0x1234)
    assert api.c.orMalloc(ctypes.byref(out), size) == Error.orErrorMemoryAllocation
    assert str(size) in api.message()
    assert out.value == 0x1234
    assert api.memory_info()[0] == CAPACITY - PAGE
    api.free(kept)


def test_size_zero_is_a_null_address(api: Api) -> None:
    assert api.malloc(0) == 0
    assert api.malloc_host(0) == 0
    api.free(0)
    api.free_host(0)


def test_free_ranges_grow_together_in_any_order(api: Api) -> None:
    blocks = [api.malloc(MIB) for _ in range(CAPACITY // MIB)]
    assert api.memory_info()[0] == 0
    random.Random(1).shuffle(blocks)
    for block in blocks:
        api.free(block)
    api.free(api.malloc(CAPACITY))


def test_fragmentation_is_distinguished_from_exhaustion(api: Api) -> None:
    blocks = [api.malloc(MIB) for _ in range(CAPACITY // MIB)]
    for block in blocks[::2]:
        api.free(block)
    with pytest.raises(DriverError, match=rf"fragmented.*\b{MIB}\b") as caught:
        api.malloc(MIB + 1)
    assert caught.value.code == Error.orErrorMemoryAllocation
    blocks[0] = api.malloc(MIB)
    for block in [blocks[0], *blocks[1::2]]:
        api.free(block)


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["allocate", "allocate", "free"]), st.integers(0, 24 * MIB)),
    max_size=40,
)


@settings(
    max_examples=40, deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(operations=OPERATIONS)
def test_allocations_follow_the_model(loaded: Api, operations: list[tuple[str, int]]) -> None:
    """In any order: exact accounts, no overlap, contents kept, no refusal without cause."""
    loaded.set_device(0)
    loaded.reset()
    live: list[tuple[int, int, bytes]] = []  # address, rounded size, first and last byte
    peak = 0
    try:
        for step, (operation, number) in enumerate(operations):
            if operation == "free" and live:
                address, size, mark = live.pop(number % len(live))
                assert loaded.download(address, 1) + loaded.download(address + size - 1, 1) == mark
                loaded.free(address)
            elif operation == "allocate":
                rounded = -(-number // PAGE) * PAGE
                free = CAPACITY - sum(size for _, size, _ in live)
                out = ctypes.c_void_p()
                code = loaded.c.orMalloc(ctypes.byref(out), number)
                if code != Error.orSuccess:
                    assert code == Error.orErrorMemoryAllocation
                    assert rounded > free or "fragmented" in loaded.message()
                    continue
                assert rounded <= free
                address = out.value or 0
                if number == 0:
                    assert address == 0
                    continue
                assert all(address + rounded <= a or a + s <= address for a, s, _ in live)
                mark = bytes([step % 251, step % 241])
                loaded.upload(address, mark[:1])
                loaded.upload(address + rounded - 1, mark[1:])
                live.append((address, rounded, mark))
            used = sum(size for _, size, _ in live)
            peak = max(peak, used)
            assert loaded.memory_info() == (CAPACITY - used, CAPACITY)
            assert loaded.stats(0).allocated_bytes == used
            assert loaded.stats(0).peak_allocated_bytes == peak
    finally:
        for address, _, _ in live:
            loaded.free(address)
    assert loaded.memory_info() == (CAPACITY, CAPACITY)
    loaded.free(loaded.malloc(CAPACITY))  # everything grew together again


def test_reset_sets_the_peak_back(api: Api) -> None:
    kept = api.malloc(MIB)
    api.free(api.malloc(4 * MIB))
    assert api.stats(0).peak_allocated_bytes == 5 * MIB
    api.reset()
    assert api.stats(0).peak_allocated_bytes == MIB
    api.free(kept)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


@linux_only
def test_pages_come_with_first_touch_and_go_with_release(api: Api) -> None:
    before = resident_bytes()
    address = api.malloc(48 * MIB)
    assert resident_bytes() - before < 8 * MIB
    api.call("orMemset", address, 7, 48 * MIB)
    assert resident_bytes() - before > 40 * MIB
    api.free(address)
    assert resident_bytes() - before < 8 * MIB


@linux_only
def test_pinned_pages_go_with_release(api: Api) -> None:
    before = resident_bytes()
    address = api.malloc_host(48 * MIB)
    ctypes.memset(address, 1, 48 * MIB)
    assert resident_bytes() - before > 40 * MIB
    api.free_host(address)
    assert resident_bytes() - before < 8 * MIB


@pytest.mark.parametrize("which", ["device", "pinned"])
def test_release_waits_for_running_work(api: Api, gate: Gate, which: str) -> None:
    address = api.malloc(PAGE) if which == "device" else api.malloc_host(PAGE)
    release = api.free if which == "device" else api.free_host
    gate.close(api.default_stream(0))
    done = threading.Event()
    thread = threading.Thread(target=lambda: (release(address), done.set()))
    thread.start()
    assert not done.wait(0.05)
    gate.open()
    assert done.wait(PATIENCE)
    thread.join()


def test_release_does_not_wait_for_another_device(api: Api, gate: Gate) -> None:
    address = api.malloc(PAGE)
    gate.close(api.default_stream(1))
    api.free(address)  # would hang until the gate gives up
    assert not gate.opened.is_set()


def test_a_second_release_is_refused_and_harmless(api: Api) -> None:
    first, second = api.malloc(PAGE), api.malloc(PAGE)
    api.free(first)
    with pytest.raises(DriverError, match="freed") as caught:
        api.free(first)
    assert caught.value.code == Error.orErrorInvalidDevicePointer
    assert api.memory_info()[0] == CAPACITY - PAGE
    api.free(second)


def test_two_threads_release_one_address(api: Api, gate: Gate) -> None:
    address = api.malloc(PAGE)
    gate.close(None)
    api.allocated.discard(address)
    codes: list[int] = []
    threads = [threading.Thread(target=lambda: codes.append(api.c.orFree(address))) for _ in range(2)]
    for thread in threads:
        thread.start()
    gate.open()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [Error.orSuccess, Error.orErrorInvalidDevicePointer]


def test_pinned_memory_is_the_hosts_to_touch(api: Api) -> None:
    address = api.malloc_host(3 * PAGE + 1)
    assert address % 4096 == 0
    ctypes.memset(address, 0x5A, 3 * PAGE + 1)
    assert ctypes.string_at(address + 3 * PAGE, 1) == b"Z"
    assert api.memory_info() == (CAPACITY, CAPACITY)  # it is not the device's
    api.free_host(address)


@pytest.mark.parametrize("size", [1 << 62, (1 << 64) - 4096, (1 << 64) - 1])
def test_pinned_memory_out_of_reach_is_refused(api: Api, size: int) -> None:
    with pytest.raises(DriverError, match=str(size)) as caught:
        api.malloc_host(size)
    assert caught.value.code == Error.orErrorMemoryAllocation


def test_pointer_attributes(api: Api) -> None:
    pageable = ctypes.create_string_buffer(16)
    pinned = api.malloc_host(2 * PAGE)
    api.set_device(1)
    device = api.malloc(2 * PAGE)
    api.set_device(0)
    none, host, memory = MemoryType
    assert api.attributes(device) == (memory, 1)
    assert api.attributes(device + 2 * PAGE - 1) == (memory, 1)
    assert api.attributes(device + 2 * PAGE) == (none, -1)
    assert api.attributes(api.kernel_view(device)) == (none, -1)
    assert api.attributes(pinned) == (host, -1)
    assert api.attributes(pinned + 2 * PAGE - 1) == (host, -1)
    assert api.attributes(ctypes.addressof(pageable)) == (none, -1)
    assert api.attributes(None) == (none, -1)
    api.free(device)
    api.free_host(pinned)
    assert api.attributes(device) == (none, -1)
    assert api.attributes(pinned) == (none, -1)


def test_the_range_around_an_address(api: Api) -> None:
    first, second = api.malloc(2 * PAGE), api.malloc(1)
    for address in (first, first + 1, first + 2 * PAGE - 1):
        assert api.address_range(address) == (first, 2 * PAGE)
    assert api.address_range(second + PAGE - 1) == (second, PAGE)
    api.free(first)
    with pytest.raises(DriverError, match="no live allocation"):
        api.address_range(first)
    api.free(second)
