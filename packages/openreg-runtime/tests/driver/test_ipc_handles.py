# SPDX-License-Identifier: BSD-3-Clause
"""Handles of freed memory, damaged handles and invalid uses of an import are refused."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from .conftest import SETTINGS
from .device_api import Api, DriverError, Error
from .peer import Peer


def fields(handle: bytes) -> list[int]:
    """Magic number, checksum, process, object, two halves of the token, size."""
    return list(struct.unpack_from("<7Q", handle))


def checksum(data: bytes) -> int:
    """FNV-1a, as anybody can calculate it."""
    total = 0xCBF29CE484222325
    for byte in data:
        total = (total ^ byte) * 0x100000001B3 % 2**64
    return total


linux_only = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc")


def test_freed_memory_stays_with_who_opened_it_but_cannot_be_opened_again(api: Api, peer: Peer) -> None:
    address = api.malloc(4096)
    api.upload(address, b"kept")
    handle = api.export(address)
    imported = peer(f"api.open({handle!r})")
    api.free(address)
    again = api.malloc(4096)
    assert again == address
    api.upload(again, b"new!")
    assert peer(f"api.download({imported}, 4)") == b"kept"
    code, message = peer(f"api.open({handle!r})")
    assert code == "orErrorInvalidValue"
    assert f"process {os.getpid()}" in message
    assert "gone" in message
    peer(f"api.close({imported})")
    api.free(again)


def test_memory_of_an_ended_process(api: Api, library: Path) -> None:
    peer = Peer(library, SETTINGS)
    handle = peer("[globals().update(address=api.malloc(4096)), api.upload(address, b'kept'), api.export(address)][-1]")
    imported = api.open(handle)
    assert peer.end() == 0
    assert api.download(imported, 4) == b"kept"
    api.close(imported)
    with pytest.raises(DriverError, match="is gone") as caught:
        api.open(handle)
    assert caught.value.code == Error.orErrorInvalidValue


@linux_only
def test_a_number_that_means_another_object_by_now_is_refused(api: Api, library: Path) -> None:
    """As when a process number is used again: the descriptor is there, but it is another allocation."""
    peer = Peer(library, SETTINGS)
    export = "[globals().update(address=api.malloc(4096)), api.export(address)][-1]"
    first = peer(export)
    peer("api.free(address)")
    second = peer(export)
    assert first != second
    assert fields(first)[2:4] == fields(second)[2:4]  # the same process and number of the object
    with pytest.raises(DriverError, match="is gone"):
        api.open(first)
    api.close(api.open(second))
    peer("api.free(address)")
    assert peer.end() == 0


@pytest.mark.parametrize("position", [0, 8, 16, 24, 32, 40, 48, 56, 127])
def test_a_damaged_handle_is_refused(api: Api, peer: Peer, position: int) -> None:
    address = api.malloc(4096)
    handle = bytearray(api.export(address))
    handle[position] ^= 0x10
    code, message = peer(f"api.open({bytes(handle)!r})")
    assert code == "orErrorInvalidValue"
    assert "`handle`" in message
    api.free(address)


# Fields of a handle (IpcHandleLayout) that hostile senders may choose, with a checksum that fits.
HOSTILE: dict[str, tuple[dict[int, int], str]] = {
    "no bytes": ({6: 0}, "whole pages"),
    "part of a page": ({6: 4097}, "whole pages"),
    "more bytes than there are addresses": ({6: 2**64 - 4096}, "whole pages"),
    "other bytes": ({6: 8192}, "is gone"),
    "another object": ({3: 0}, "is gone"),
    "an object that no process can have": ({3: 2**32}, "is gone"),
    "a process that there cannot be": ({2: 2**32}, "is gone"),
    "another token": ({5: 1}, "is gone"),
}


@pytest.mark.parametrize("lie", HOSTILE)
def test_a_handle_that_lies_is_refused(api: Api, peer: Peer, lie: str) -> None:
    """Each field by itself; platform_ipc_fuzz.cpp combines them, and objects that are no exports."""
    changes, text = HOSTILE[lie]
    address = api.malloc(4096)
    handle = api.export(address)
    numbers = fields(handle)
    for index, value in changes.items():
        numbers[index] = value
    numbers[1] = checksum(struct.pack("<5Q", *numbers[2:]))
    code, message = peer(f"api.open({struct.pack('<7Q', *numbers).ljust(128, bytes(1))!r})")
    assert code == "orErrorInvalidValue"
    assert text in message
    assert fields(handle)[1] == checksum(handle[16:56])  # else the lie was not believed for another reason
    api.free(address)


@pytest.mark.parametrize("handle", [bytes(128), b"\xff" * 128, b"OregIPC1" * 16])
def test_garbage_is_refused(api: Api, handle: bytes) -> None:
    with pytest.raises(DriverError, match=r"orIpcGetMemHandle\(\)"):
        api.open(handle)


def test_a_handle_of_the_own_process_is_refused(api: Api) -> None:
    address = api.malloc(4096)
    with pytest.raises(DriverError, match="process"):
        api.open(api.export(address))
    api.free(address)


# What must not be done with the address of an import, or of the own memory.
MISUSES: dict[str, tuple[str, str]] = {
    "free an import": ("api.free(imported)", "close it with orIpcCloseMemHandle"),
    "export an import": ("api.export(imported)", "memory of another process"),
    "close inside an import": ("api.close(imported + 4096)", "close each import once, by its start"),
    "close own memory": ("api.close(own)", "not returned by orIpcOpenMemHandle"),
    "close host memory": ("api.close(4096)", "not device memory"),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_misuse_is_refused(peer: Peer, shared: tuple[int, int], misuse: str) -> None:
    expression, text = MISUSES[misuse]
    own = peer("api.malloc(4096)")
    code, message = peer(expression.replace("imported", str(shared[1])).replace("own", str(own)))
    assert code == "orErrorInvalidDevicePointer"
    assert text in message
    peer(f"api.free({own})")


def test_a_second_close_is_refused(api: Api, peer: Peer) -> None:
    address = api.malloc(4096)
    imported = peer(f"api.open({api.export(address)!r})")
    peer(f"api.close({imported})")
    code, message = peer(f"api.close({imported})")
    assert (code, "closed" in message) == ("orErrorInvalidDevicePointer", True)
    assert peer(f"api.download({imported}, 1)")[0] == "orErrorInvalidDevicePointer"
    api.free(address)
