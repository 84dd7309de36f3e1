# SPDX-License-Identifier: BSD-3-Clause
"""Copies and fills are right in every direction and size, and only the documented ones block."""

from __future__ import annotations

import ctypes
import itertools
import random

import pytest

from .conftest import MIB, Gate
from .device_api import Api, DriverError, Error, Kind

# Around pages, the staging limit (64 KiB), the size from which the copy engine works (1 MiB), and those from which two
# threads share a copy (8 MiB) and its stores bypass the caches (32 MiB).
SIZES = [1, 3, 4096, 4097, 65536, 65537, MIB - 1, MIB, 3 * MIB + 5, 8 * MIB, 9 * MIB + 7, 32 * MIB - 1, 32 * MIB + 9]


def pattern(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("stage", ["blocking", "pageable", "pinned"])
def test_round_trip(api: Api, size: int, stage: str) -> None:
    """Host to device 0, on to device 1, back to the host."""
    data = pattern(size)
    first = api.malloc(size)
    api.set_device(1)
    second = api.malloc(size)
    api.set_device(0)
    pinned = [api.malloc_host(size) for _ in range(2)]
    pageable = ctypes.create_string_buffer(data, size), ctypes.create_string_buffer(size)
    source, target = pinned if stage == "pinned" else map(ctypes.addressof, pageable)
    ctypes.memmove(source, data, size)
    plan = [
        (first, source, Kind.orMemcpyHostToDevice),
        (second, first, Kind.orMemcpyDeviceToDevice),
        (target, second, Kind.orMemcpyDeviceToHost),
    ]
    stream = api.stream()
    for destination, origin, kind in plan:
        if stage == "blocking":
            api.call("orMemcpy", destination, origin, size, kind)
        else:
            api.copy_async(destination, origin, size, stream, kind)
    if stage == "pinned":
        api.synchronize_stream(stream)
    assert ctypes.string_at(target, size) == data
    api.destroy_stream(stream)
    for address in (first, second):
        api.free(address)
    for address in pinned:
        api.free_host(address)


@pytest.mark.parametrize("size", [65, 32 * MIB + 9])
def test_a_copy_writes_nothing_beside_its_range(api: Api, size: int) -> None:
    """At addresses of any alignment."""
    source = ctypes.create_string_buffer(pattern(size + 5), size + 5)
    target = ctypes.create_string_buffer(b"-" * (size + 128), size + 128)
    addresses = ctypes.addressof(target) + 61, ctypes.addressof(source) + 5
    api.call("orMemcpy", *addresses, size, Kind.orMemcpyHostToHost)
    assert target.raw == b"-" * 61 + source.raw[5:] + b"-" * 67


def test_default_kind_infers_every_direction(api: Api) -> None:
    device = [api.malloc(64), api.malloc(64)]
    host = [ctypes.create_string_buffer(b"a" * 64, 64), ctypes.create_string_buffer(64)]
    chain = [host[0], device[0], device[1], host[1]]
    for source, destination in itertools.pairwise(chain):
        api.call("orMemcpy", destination, source, 64, Kind.orMemcpyDefault)
    assert host[1].raw == b"a" * 64
    third = ctypes.create_string_buffer(64)
    api.call("orMemcpy", third, host[1], 64, Kind.orMemcpyDefault)
    assert third.raw == b"a" * 64
    for address in device:
        api.free(address)


DIRECTIONS = {
    ("host", "host"): Kind.orMemcpyHostToHost,
    ("device", "host"): Kind.orMemcpyHostToDevice,
    ("host", "device"): Kind.orMemcpyDeviceToHost,
    ("device", "device"): Kind.orMemcpyDeviceToDevice,
}


@pytest.mark.parametrize("places", DIRECTIONS)
@pytest.mark.parametrize("kind", [*list(Kind)[:4], 5, -1])
def test_a_kind_that_does_not_fit_is_refused(api: Api, places: tuple[str, str], kind: int) -> None:
    device = {place: api.malloc(64) for place in ("destination", "source")}
    host = {place: ctypes.create_string_buffer(64) for place in ("destination", "source")}
    destination = (device if places[0] == "device" else host)["destination"]
    source = (device if places[1] == "device" else host)["source"]
    code = api.c.orMemcpy(destination, source, 64, kind)
    if kind == DIRECTIONS[places]:
        assert code == Error.orSuccess
    else:
        assert code == Error.orErrorInvalidMemcpyDirection
        assert f"from {places[1]} to {places[0]}" in api.message()
    for address in device.values():
        api.free(address)


@pytest.mark.parametrize("shift", [1, 4096, 5000])
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("size", [20000, 8 * MIB, 32 * MIB])
def test_overlapping_ranges_copy_as_if_buffered(api: Api, shift: int, forward: bool, size: int) -> None:
    data = pattern(size)
    address = api.malloc(size + shift)
    low, high = address, address + shift
    source, destination = (low, high) if forward else (high, low)
    api.upload(source, data)
    api.call("orMemcpy", destination, source, len(data), Kind.orMemcpyDeviceToDevice)
    assert api.download(destination, len(data)) == data
    api.free(address)


def test_a_range_must_lie_inside_one_allocation(api: Api) -> None:
    first, second = api.malloc(4096), api.malloc(4096)
    api.upload(first, b"1" * 4096)
    api.upload(second, b"2" * 4096)
    host = ctypes.create_string_buffer(3 * 4096)
    start = min(first, second)
    for address, size in [(start, 4097), (start + 1, 4096), (start + 8192, 1), (start, 1 << 40)]:
        for code in (
            api.c.orMemcpy(host, address, size, Kind.orMemcpyDeviceToHost),
            api.c.orMemcpy(address, host, size, Kind.orMemcpyHostToDevice),
            api.c.orMemset(address, 0, size),
        ):
            assert code == Error.orErrorInvalidDevicePointer
            assert "one live allocation" in api.message()
    assert api.download(first, 4096) == b"1" * 4096
    assert api.download(second, 4096) == b"2" * 4096
    api.free(first)
    api.free(second)
    assert api.c.orMemcpy(host, first, 1, Kind.orMemcpyDefault) == Error.orErrorInvalidDevicePointer


def test_nothing_to_copy_touches_nothing(api: Api) -> None:
    for address in (None, 0x1000):
        api.call("orMemcpy", address, address, 0, Kind.orMemcpyDefault)
        api.copy_async(address, address, 0, None)
        api.call("orMemset", address, 0, 0)
    with pytest.raises(DriverError, match="stream 0x77"):
        api.copy_async(None, None, 0, 0x77)


def test_pinned_copies_return_at_once(api: Api, gate: Gate) -> None:
    size = 2 * MIB
    stream, device = api.stream(), api.malloc(size)
    pinned, back = api.malloc_host(size), api.malloc_host(size)
    ctypes.memset(pinned, 1, size)
    ctypes.memset(back, 9, size)
    gate.close(stream)
    api.copy_async(device, pinned, size, stream)
    api.copy_async(back, device, size, stream)
    assert not api.stream_ready(stream)
    ctypes.memset(pinned, 2, size)  # the contract forbids it; it shows when the source is read
    assert ctypes.string_at(back, size) == b"\x09" * size
    gate.open()
    api.synchronize_stream(stream)
    assert ctypes.string_at(back, size) == b"\x02" * size
    api.destroy_stream(stream)
    api.free(device)
    api.free_host(pinned)
    api.free_host(back)


@pytest.mark.parametrize("size", [1, 65536])
def test_a_small_pageable_source_is_read_before_the_call_returns(api: Api, gate: Gate, size: int) -> None:
    stream, device = api.stream(), api.malloc(size)
    source = ctypes.create_string_buffer(b"a" * size, size)
    gate.close(stream)
    api.copy_async(device, source, size, stream)
    assert not api.stream_ready(stream)
    ctypes.memset(source, ord("b"), size)
    gate.open()
    api.synchronize_stream(stream)
    assert api.download(device, size) == b"a" * size
    api.destroy_stream(stream)
    api.free(device)


def test_a_large_pageable_source_is_waited_for(api: Api) -> None:
    stream, device = api.stream(), api.malloc(65537)
    api.delay(stream, 0.02)
    api.copy_async(device, pattern(65537), 65537, stream)
    assert api.stream_ready(stream)
    assert api.download(device, 65537) == pattern(65537)
    api.destroy_stream(stream)
    api.free(device)


@pytest.mark.parametrize("size", [1, 100000])
def test_a_pageable_destination_is_written_before_the_call_returns(api: Api, size: int) -> None:
    stream, device = api.stream(), api.malloc(size)
    api.upload(device, pattern(size))
    target = ctypes.create_string_buffer(size)
    api.delay(stream, 0.02)
    api.copy_async(target, device, size, stream)
    assert target.raw == pattern(size)
    api.destroy_stream(stream)
    api.free(device)


def test_a_part_of_pinned_memory_is_pinned_too(api: Api, gate: Gate) -> None:
    pinned, device, stream = api.malloc_host(8192), api.malloc(8192), api.stream()
    gate.close(stream)
    api.copy_async(device, pinned + 100, 8000, stream)
    api.copy_async(pinned + 1, device, 8191, stream)
    assert not api.stream_ready(stream)  # neither call waited
    gate.open()
    api.synchronize_stream(stream)
    api.destroy_stream(stream)
    api.free_host(pinned)
    api.free(device)


def test_a_blocking_copy_comes_after_the_default_streams_work(api: Api) -> None:
    device = api.malloc(4096)
    api.call("orMemset", device, 1, 4096)
    api.delay(None, 0.02)
    api.call("orMemsetAsync", device, 2, 4096, None)
    assert api.download(device, 4096) == b"\2" * 4096
    api.free(device)


@pytest.mark.parametrize(("value", "byte"), [(0, 0), (255, 255), (-1, 255), (0x1FF, 255), (256, 0)])
def test_a_fill_takes_the_lowest_byte(api: Api, value: int, byte: int) -> None:
    device = api.malloc(MIB + 10)
    api.call("orMemset", device, 77, MIB + 10)
    api.call("orMemset", device + 5, value, MIB)
    assert api.download(device, MIB + 10) == b"M" * 5 + bytes([byte]) * MIB + b"M" * 5
    api.free(device)


def test_an_asynchronous_fill_is_in_stream_order(api: Api, gate: Gate) -> None:
    stream, device, pinned = api.stream(), api.malloc(64), api.malloc_host(64)
    ctypes.memset(pinned, 0, 64)
    gate.close(stream)
    for value in (1, 2, 3):
        api.call("orMemsetAsync", device, value, 64, stream)
    api.copy_async(pinned, device, 64, stream)
    assert ctypes.string_at(pinned, 64) == b"\0" * 64
    gate.open()
    api.synchronize_stream(stream)
    assert ctypes.string_at(pinned, 64) == b"\3" * 64
    api.destroy_stream(stream)
    api.free(device)
    api.free_host(pinned)


def test_copies_are_counted(api: Api) -> None:
    device = api.malloc(MIB)
    api.upload(device, b"x" * 1000)
    api.download(device, 500)
    api.call("orMemset", device, 0, 24)
    stats = api.stats(0)
    assert (stats.copies, stats.bytes_copied, stats.launches) == (3, 1524, 0)
    assert stats.busy_nanoseconds > 0
    assert api.stats(1).copies == 0
    api.free(device)


@pytest.mark.parametrize("size", [1, 4097, 3 * MIB + 5])
@pytest.mark.parametrize("function", ["orMemcpyPeer", "orMemcpyPeerAsync"])
def test_peer_copies_between_devices(api: Api, size: int, function: str) -> None:
    data = pattern(size)
    first = api.malloc(size)
    api.set_device(1)
    second, third = api.malloc(size), api.malloc(size)
    api.set_device(0)
    api.upload(first, data)
    stream = api.stream()
    more = () if function == "orMemcpyPeer" else (stream,)
    api.call(function, second, 1, first, 0, size, *more)
    api.call(function, third, 1, second, 1, size, *more)  # inside one device, from another one's stream
    if more:
        api.synchronize_stream(stream)
    assert api.download(third, size) == data
    api.destroy_stream(stream)
    for address in (first, second, third):
        api.free(address)


def test_a_peer_copy_is_enqueued(api: Api, gate: Gate) -> None:
    first = api.malloc(4)
    api.set_device(1)
    second = api.malloc(4)
    api.set_device(0)
    stream = api.stream()
    api.upload(first, b"old!")
    gate.close(stream)
    api.call("orMemcpyPeerAsync", second, 1, first, 0, 4, stream)
    assert not api.stream_ready(stream)
    gate.open()
    api.synchronize_stream(stream)
    assert api.download(second, 4) == b"old!"
    api.destroy_stream(stream)
    api.free(first)
    api.free(second)


def test_a_peer_copy_names_the_device_that_does_not_own_the_range(api: Api) -> None:
    address = api.malloc(4)
    with pytest.raises(DriverError, match=r"`src` = 0x\w+ .*device 0.*device 1"):
        api.call("orMemcpyPeer", address, 0, address, 1, 4)
    buffer = ctypes.create_string_buffer(4)
    with pytest.raises(DriverError, match=r"`dst` = 0x\w+ .*host.*device 0"):
        api.call("orMemcpyPeer", buffer, 0, address, 0, 4)
    api.free(address)
