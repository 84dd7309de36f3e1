# SPDX-License-Identifier: BSD-3-Clause
"""Two processes share one allocation, which lives as long as either uses it. Invalid uses are refused."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ._platform import HAS_FORK, IS_WINDOWS
from .conftest import CAPACITY, MIB, SETTINGS, RunScript
from .device_api import Api, DriverError, Error, IpcMemHandle, MemoryType
from .peer import Peer

# How a process ends that touches what it must not. On Windows ctypes may raise an exception, which ends Python with 1.
FAULTS = (0xC0000005, 1) if IS_WINDOWS else (-signal.SIGSEGV, -signal.SIGBUS)

linux_only = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc")


def test_content_is_there_and_writes_are_seen_on_both_sides(api: Api, peer: Peer) -> None:
    data = random.Random(1).randbytes(3 * MIB)
    address = api.malloc(4 * MIB)
    api.upload(address + MIB, data)
    imported = peer(f"api.open({api.export(address)!r})")
    assert api.download(address + MIB, len(data)) == data
    assert api.download(address, MIB) == bytes(MIB)
    assert peer(f"api.download({imported + MIB}, 100)") == data[:100]
    api.upload(address, b"to there")
    peer(f"api.upload({imported + 4096}, b'to here')")
    assert peer(f"api.download({imported}, 8)") == b"to there"
    assert api.download(address + 4096, 7) == b"to here"
    peer(f"api.close({imported})")
    api.free(address)


def test_exporting_keeps_the_accounts_and_importing_costs_no_capacity(api: Api, peer: Peer) -> None:
    address = api.malloc(MIB)
    handle = api.export(address)
    assert api.memory_info()[0] == CAPACITY - MIB
    imported = peer(f"api.open({handle!r})")
    assert peer("api.memory_info()") == (CAPACITY, CAPACITY)
    whole = peer(f"api.malloc({CAPACITY})")
    peer(f"api.free({whole})")
    peer(f"api.close({imported})")
    api.free(address)
    assert api.memory_info()[0] == CAPACITY


def test_a_second_handle_of_an_allocation_is_the_same(api: Api) -> None:
    address = api.malloc(4096)
    assert api.export(address) == api.export(address)
    api.free(address)


def test_an_import_may_be_as_large_as_the_capacity(api: Api, peer: Peer) -> None:
    address = api.malloc(CAPACITY)
    api.upload(address + CAPACITY - 4, b"last")
    imported = peer(f"api.open({api.export(address)!r})")
    assert peer(f"api.download({imported + CAPACITY - 4}, 4)") == b"last"
    more = peer(f"api.open({api.export(address)!r})")
    assert more[0] == "orErrorMemoryAllocation"
    assert "device 0 has no addresses" in more[1]
    peer(f"api.close({imported})")
    peer(f"api.close(api.open({api.export(address)!r}))")
    api.free(address)


def test_an_import_has_the_attributes_of_device_memory(peer: Peer, shared: tuple[int, int]) -> None:
    _, imported = shared
    assert peer(f"[*map(int, api.attributes({imported}))]") == [MemoryType.orMemoryTypeDevice, 0]
    assert peer(f"[*map(int, api.attributes({imported + 16383}))]") == [MemoryType.orMemoryTypeDevice, 0]
    assert peer(f"[*map(int, api.attributes({imported + 16384}))]") == [MemoryType.orMemoryTypeUnmanaged, -1]
    assert peer(f"api.address_range({imported + 16383})") == (imported, 16384)


def test_the_current_device_gets_the_import(api: Api, peer: Peer) -> None:
    address = api.malloc(4096)
    peer("api.set_device(1)")
    imported = peer(f"api.open({api.export(address)!r})")
    assert peer(f"int(api.attributes({imported})[1])") == 1
    peer("api.set_device(0)")
    peer(f"api.close({imported})")
    api.free(address)


def test_copies_fills_and_kernels_work_on_imports(api: Api, peer: Peer, shared: tuple[int, int]) -> None:
    address, imported = shared
    peer(f"api.call('orMemset', {imported}, 7, 16384)")
    assert api.download(address, 16384) == b"\7" * 16384
    own = peer("api.malloc(4096)")
    peer(f"api.upload({own}, b'device to device')")
    peer(f"api.call('orMemcpy', {imported}, {own}, 16, 3)")
    peer(f"api.free({own})")
    view = peer(f"api.kernel_view({imported})")
    peer(f"api.launch(None, lambda: ctypes.memset({view + 100}, 0x4B, 3))")
    peer("api.synchronize()")
    assert api.download(address, 16) == b"device to device"
    assert api.download(address + 99, 5) == b"\7KKK\7"


def test_ranges_beyond_an_import_are_refused(peer: Peer, shared: tuple[int, int]) -> None:
    _, imported = shared
    assert peer(f"api.call('orMemset', {imported + 16383}, 7, 2)")[0] == "orErrorInvalidDevicePointer"
    assert peer(f"api.download({imported + 16384}, 1)")[0] == "orErrorInvalidDevicePointer"


def test_a_host_access_of_an_import_faults(api: Api, library: Path) -> None:
    address = api.malloc(4096)
    peer = Peer(library, SETTINGS)
    imported = peer(f"api.open({api.export(address)!r})")
    with pytest.raises(AssertionError, match="ended"):
        peer(f"ctypes.string_at({imported}, 1)")
    assert peer.end() in FAULTS
    api.free(address)


def test_a_kernel_that_leaves_the_memory_of_its_device_faults(run_script: RunScript) -> None:
    done = run_script(
        f"""
        address = api.malloc({CAPACITY})
        api.set_device(1)
        api.call("orMemset", api.malloc({CAPACITY}), 1, {CAPACITY})
        view = api.kernel_view(address)
        ctypes.memset(view + {CAPACITY} - 1, 1, 1)
        print("before", flush=True)
        ctypes.memset(view + {CAPACITY}, 1, 1)
        """
    )
    assert done.output.split() == ["before"], done.errors
    assert done.code in FAULTS, done.errors


def test_closing_waits_for_work_on_the_import(api: Api, peer: Peer) -> None:
    address = api.malloc(4096)
    imported = peer(f"api.open({api.export(address)!r})")
    peer("api.delay(None, 0.05)")
    peer(f"api.call('orMemsetAsync', {imported}, 5, 4096, None)")
    peer(f"api.close({imported})")
    assert api.download(address, 4096) == b"\5" * 4096
    api.free(address)


def test_exporting_waits_for_the_device(api: Api) -> None:
    address = api.malloc(4096)
    api.call("orMemset", address, 1, 4096)
    api.delay(None, 0.05)
    api.call("orMemsetAsync", address, 2, 4096, None)
    api.export(address)
    assert api.stream_ready(None)
    assert api.download(address, 4096) == b"\2" * 4096
    api.free(address)


def test_no_write_is_lost_while_another_thread_exports(api: Api) -> None:
    """Memory moves into a shared object while kernels keep on writing to it, from this device and the other one."""
    size, rounds = 3 * MIB, 3  # moving so much takes longer than many of these kernels
    stop = threading.Event()

    def launch(device: int) -> None:
        api.set_device(device)
        stream = api.stream()
        while not stop.is_set():
            for _ in range(50):
                api.launch(stream, increment)
                launched[device] += 1
            api.synchronize_stream(stream)
        api.destroy_stream(stream)

    for _ in range(rounds):
        addresses = [api.malloc(size) for _ in range(10)]
        counters = [ctypes.c_uint64.from_address(api.kernel_view(address)) for address in addresses]
        for address, counter in zip(addresses, counters, strict=True):
            api.call("orMemset", address, 1, size)
            counter.value = 0
        launched = [0, 0]

        def increment(counters: list[ctypes.c_uint64] = counters) -> None:
            for counter in counters:
                counter.value += 1

        stop.clear()
        threads = [threading.Thread(target=launch, args=(device,)) for device in range(2)]
        for thread in threads:
            thread.start()
        for address in addresses:
            api.export(address)
        stop.set()
        for thread in threads:
            thread.join()
        assert [counter.value for counter in counters] == [sum(launched)] * 10
        for address in addresses:
            api.free(address)


def test_a_failed_device_exports_nothing(api: Api) -> None:
    address = api.malloc(4096)
    api.launch(None, lambda: "broken")
    with pytest.raises(DriverError, match="broken") as caught:
        api.export(address)
    assert caught.value.code == Error.orErrorLaunchFailure
    api.reset()
    api.free(address)


def test_a_kernel_may_not_export(api: Api) -> None:
    address = api.malloc(4096)
    codes: list[int] = []
    handle = IpcMemHandle()
    api.launch(None, lambda: codes.append(api.c.orIpcGetMemHandle(ctypes.byref(handle), address)))
    api.synchronize()
    assert codes == [Error.orErrorNotSupported]
    api.free(address)


@linux_only
def test_no_descriptor_and_no_memory_is_left(api: Api, peer: Peer) -> None:
    def count(ask: Callable[[str], Any]) -> tuple[int, int]:
        files = ask("len(os.listdir('/proc/self/fd'))")
        maps = "__import__('pathlib').Path('/proc/self/maps').read_text()"
        mapped = ask(f"{maps}.count('memfd:openreg')")
        return files, mapped

    def here(expression: str) -> Any:
        return eval(expression)

    before = count(here), count(peer)
    for _ in range(20):
        address = api.malloc(MIB)
        handle = api.export(address)
        first, second = (peer(f"api.open({handle!r})") for _ in range(2))
        assert first != second
        peer(f"api.close({first})")
        peer(f"api.open({bytes(128)!r})")
        peer(f"api.close({second})")
        api.free(address)
        peer(f"api.open({handle!r})")
    assert (count(here), count(peer)) == before


@linux_only
def test_pages_that_were_never_used_take_no_memory(api: Api) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    address = api.malloc(48 * MIB)
    api.upload(address + 24 * MIB, b"used")
    before = resident()
    api.export(address)
    assert resident() - before < 8 * MIB
    api.call("orMemset", address, 1, 48 * MIB)
    assert resident() - before > 40 * MIB
    api.free(address)
    assert resident() - before < 8 * MIB


@pytest.mark.skipif(not HAS_FORK, reason="this system has no fork()")
def test_a_child_that_exits_changes_nothing(run_script: RunScript) -> None:
    done = run_script(
        """
        address = api.malloc(4096)
        api.upload(address, b"mine")
        handle = api.export(address)
        pid = os.fork()
        if pid == 0:
            assert api.c.orFree(address) == api.c.orIpcCloseMemHandle(address) == 0
            sys.exit(0)  # with exit handlers
        print(os.waitpid(pid, 0)[1], api.download(address, 4), handle == api.export(address))
        """
    )
    assert done.output.split() == ["0", "b'mine'", "True"], done.errors
