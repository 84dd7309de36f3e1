# SPDX-License-Identifier: BSD-3-Clause
"""Handles of memory that is gone, damaged handles, and what must not be done with an import."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .conftest import SETTINGS
from .device_api import Api, DriverError, Error
from .peer import Peer

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
def test_a_name_that_means_another_object_by_now_is_refused(api: Api, library: Path) -> None:
    """As when a process number is used again: the descriptor is there, but it is another allocation."""
    peer = Peer(library, SETTINGS)
    export = "[globals().update(address=api.malloc(4096)), api.export(address)][-1]"
    first = peer(export)
    peer("api.free(address)")
    second = peer(export)
    assert first != second
    assert first[48:80] == second[48:80]  # the same name
    with pytest.raises(DriverError, match="is gone"):
        api.open(first)
    api.close(api.open(second))
    peer("api.free(address)")
    assert peer.end() == 0


@pytest.mark.parametrize("position", [0, 8, 16, 24, 32, 40, 48, 100])
def test_a_damaged_handle_is_refused(api: Api, peer: Peer, position: int) -> None:
    address = api.malloc(4096)
    handle = bytearray(api.export(address))
    handle[position] ^= 0x10
    code, message = peer(f"api.open({bytes(handle)!r})")
    assert code == "orErrorInvalidValue"
    assert "`handle`" in message
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
