# SPDX-License-Identifier: BSD-3-Clause
"""Resizing a storage on the device keeps its bytes, and the host cannot access them."""

import pytest
import torch
from driver._platform import IS_POSIX

from openreg_runtime import openreg

pytestmark = pytest.mark.usefixtures("clean_device")


def storage_with(driver, text, device="openreg:0"):
    storage = torch.UntypedStorage(len(text), device=device)
    driver.upload(storage.data_ptr(), text)
    return storage


@pytest.mark.covers("private_use1_hooks.resizePrivateUse1Bytes")
@pytest.mark.parametrize("size", [0, 1, 5, 10, 11, 5000, 3 << 20])
def test_resizing_keeps_the_bytes_that_fit(driver, size):
    storage = storage_with(driver, b"0123456789")
    storage.resize_(size)
    assert storage.nbytes() == size
    assert storage.device == torch.device("openreg:0")
    openreg.synchronize()
    kept = min(size, 10)
    if kept:
        assert driver.download(storage.data_ptr(), kept) == b"0123456789"[:kept]


def test_a_storage_stays_on_its_device_when_another_is_current(driver):
    storage = storage_with(driver, b"abc", "openreg:1")
    storage.resize_(100_000)
    assert openreg.current_device() == 0
    openreg.synchronize(1)
    assert driver.attributes(storage.data_ptr())[1] == 1
    assert driver.download(storage.data_ptr(), 3) == b"abc"


def test_resizing_frees_the_old_memory():
    before = openreg.memory_allocated()
    storage = torch.UntypedStorage(5 << 20, device="openreg")
    storage.resize_(0)
    assert openreg.memory_allocated() == before
    assert storage.data_ptr() == 0
    storage.resize_(4096)
    assert openreg.memory_allocated() == before + 4096


def test_resizing_does_not_wait(driver, gate):
    storage = storage_with(driver, b"first")
    gate.close()
    storage.resize_(1000)
    assert not openreg.current_stream().query()
    gate.open()
    openreg.synchronize()
    assert driver.download(storage.data_ptr(), 5) == b"first"


def test_memory_resized_on_another_stream_is_not_reused_before_it_was_copied(driver, gate):
    storage = storage_with(driver, b"precious")
    address = storage.data_ptr()
    with openreg.stream(openreg.Stream()):
        gate.close()
        storage.resize_(1000)
    # Its own stream may take the old block again only after that copy.
    assert torch.UntypedStorage(8, device="openreg").data_ptr() != address
    assert openreg.memory_stats()["active_bytes.all.current"] > openreg.memory_allocated()
    gate.open()
    openreg.synchronize()
    assert driver.download(storage.data_ptr(), 8) == b"precious"
    reused = [torch.UntypedStorage(8, device="openreg") for _ in range(3)]
    assert address in [other.data_ptr() for other in reused]
    assert openreg.memory_stats()["active_bytes.all.current"] == openreg.memory_allocated()


def test_resizing_beyond_the_memory_leaves_the_storage(driver):
    storage = storage_with(driver, b"here")
    with pytest.raises(torch.OutOfMemoryError):
        storage.resize_(1 << 60)
    assert storage.nbytes() == 4
    assert driver.download(storage.data_ptr(), 4) == b"here"


def test_a_negative_size_is_refused():
    with pytest.raises(RuntimeError):
        torch.UntypedStorage(-1, device="openreg")
    storage = torch.UntypedStorage(8, device="openreg")
    with pytest.raises((RuntimeError, ValueError)):
        storage.resize_(-5)
    assert storage.nbytes() == 8


@pytest.mark.skipif(not IS_POSIX, reason="signals tell how the process ended")
def test_reading_device_memory_on_the_host_faults(run_python):
    outcome = run_python("""
        import ctypes, torch, openreg_runtime
        storage = torch.UntypedStorage(100, device="openreg")
        print("before", flush=True)
        print(ctypes.c_char.from_address(storage.data_ptr()).value)
    """)
    assert outcome.code == -11  # SIGSEGV
    assert outcome.output == "before\n"
