# SPDX-License-Identifier: BSD-3-Clause
"""A storage sent to another process shares its memory, which stays allocated until both have released it."""

import multiprocessing
import pickle
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
from driver.conftest import PATIENCE, find_library
from driver.device_api import Api

from openreg_runtime import _C, openreg

pytestmark = pytest.mark.usefixtures("clean_device")


def overwrite(connection):
    """Sends back the bytes that it received, writes others over them, and drops the storage."""
    storage = connection.recv()
    device = Api(find_library())
    content = device.download(storage.data_ptr(), storage.nbytes())
    device.upload(storage.data_ptr(), content[::-1])
    connection.send((str(storage.device), content))
    del storage
    connection.send("dropped")
    connection.recv()


def collected():
    openreg.ipc_collect()
    return openreg.memory_allocated()


@pytest.mark.covers("module.ipc_collect")
def test_what_was_sent_stays_allocated_until_it_comes_back(driver):
    before = collected()
    storage = torch.UntypedStorage(1000, device="openreg")
    message = ForkingPickler.dumps(storage)
    del storage
    assert collected() > before
    received = pickle.loads(message)  # by the sender itself: the same storage
    assert received.nbytes() == 1000
    del received
    assert collected() == before


@pytest.mark.covers("registration.reducers of torch.multiprocessing")
def test_another_process_reads_and_writes_a_storage(driver):
    before = collected()
    storage = torch.UntypedStorage(5, device="openreg")
    driver.upload(storage.data_ptr(), b"hello")
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=overwrite, args=(there,), daemon=True)
    process.start()
    there.close()  # so that the end of the other process ends a wait for its answer
    here.send(storage)
    assert here.poll(PATIENCE)
    assert here.recv() == ("openreg:0", b"hello")
    assert driver.download(storage.data_ptr(), 5) == b"olleh"
    del storage
    assert here.poll(PATIENCE)
    assert here.recv() == "dropped"
    assert collected() == before
    here.send("end")
    process.join(PATIENCE)
    assert process.exitcode == 0


def test_a_storage_of_no_bytes_is_sent_without_memory():
    received = pickle.loads(ForkingPickler.dumps(torch.UntypedStorage(0, device="openreg:1")))
    assert (str(received.device), received.nbytes()) == ("openreg:1", 0)


def test_host_storages_are_sent_as_ever():
    storage = torch.UntypedStorage([1, 2, 3])
    assert pickle.loads(ForkingPickler.dumps(storage)).tolist() == [1, 2, 3]


@pytest.mark.parametrize("handle", [b"", b"x" * 127, b"x" * 129])
def test_a_handle_of_another_size_is_refused(handle):
    with pytest.raises(ValueError, match="128 bytes"):
        _C._open_storage(0, handle, 0, 8, handle, 0)


def test_a_handle_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"orIpcGetMemHandle"):
        _C._open_storage(0, bytes(128), 0, 8, bytes(128), 0)


def test_importing_and_collecting_initialize_nothing(succeed):
    succeed("""
        import torch, openreg_runtime
        torch.openreg.ipc_collect()
        assert not torch.openreg.is_initialized()
    """)
