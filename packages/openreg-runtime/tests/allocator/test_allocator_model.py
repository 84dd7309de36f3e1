# SPDX-License-Identifier: BSD-3-Clause
"""The caching allocator agrees with a model, for random raw allocations on several streams."""

import gc
import itertools

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openreg_runtime import openreg

pytestmark = pytest.mark.usefixtures("clean_device", "no_garbage")

KIB, MIB = 1 << 10, 1 << 20
SIZES = st.one_of(st.integers(1, 4 * KIB), st.integers(1, 3 * MIB), st.sampled_from([MIB, MIB + 1, 10 * MIB, 21 * MIB]))
ALLOCATE = st.tuples(st.just("allocate"), SIZES, st.integers(0, 3))
RELEASE = st.tuples(st.just("release"), st.integers(0, 10**6), st.just(0))
EMPTY = st.tuples(st.just("empty"), st.just(0), st.just(0))
STEPS = st.lists(st.one_of(ALLOCATE, ALLOCATE, RELEASE, EMPTY), max_size=50)


@pytest.fixture
def no_garbage():
    """Of other tests, whose memory would go back in the middle of one of these."""
    gc.collect()
    openreg.ipc_collect()


def blocks_of(segments):
    return [(segment, block) for segment in segments for block in segment["blocks"]]


def in_use(segments):
    """Addresses and sizes."""
    return {
        block["address"]: block["requested_size"] for _, block in blocks_of(segments) if block["state"] != "inactive"
    }


def segments_of(device):
    return [segment for segment in openreg.memory_snapshot() if segment["device"] == device]


def rounded(size):
    return max(512, -(-size // 512) * 512)


def is_free_for_all(segment):
    """A private pool keeps what it has."""
    return segment["active_size"] == 0 and segment["segment_pool_id"] == (0, 0)


def best_fit(segments, size, stream):
    """Address that the request must get, or None if no free block serves it."""
    kind = "small" if rounded(size) <= MIB else "large"
    fitting = [
        (block["size"], block["address"])
        for segment, block in blocks_of(segments)
        if block["state"] == "inactive"
        and block["size"] >= rounded(size)
        and (segment["stream"], segment["segment_type"], segment["segment_pool_id"]) == (stream, kind, (0, 0))
    ]
    return min(fitting)[1] if fitting else None


def check(live, segments):
    ranges = sorted((address, address + size) for address, size in live.items())
    assert all(low[1] <= high[0] for low, high in itertools.pairwise(ranges))
    for segment in segments:
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
        states = [block["state"] for block in segment["blocks"]]
        assert ("inactive", "inactive") not in itertools.pairwise(states)  # free neighbors are joined
    assert in_use(segments) == live
    stats = openreg.memory_stats()
    assert stats["requested_bytes.all.current"] == sum(live.values())
    assert stats["allocation.all.current"] == len(live)
    assert stats["segment.all.current"] == len(segments)
    for field, name in (("total_size", "reserved_bytes"), ("allocated_size", "allocated_bytes")):
        for pool in ("small", "large"):
            total = sum(segment[field] for segment in segments if segment["segment_type"] == pool)
            assert stats[f"{name}.{pool}_pool.current"] == total


@settings(
    max_examples=40, deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(steps=STEPS)
def test_random_use_agrees_with_the_model(steps):
    """Whatever other tests have left on the device is there before and after it."""
    openreg.empty_cache()
    before, reserved, free = segments_of(0), openreg.memory_reserved(), openreg.mem_get_info()[0]
    streams = [openreg.default_stream(0).stream_id, *(openreg.Stream(0).stream_id for _ in range(3))]
    others = in_use(before)
    live = dict(others)
    for action, number, choice in steps:
        segments = segments_of(0)
        if action == "allocate":
            expected = best_fit(segments, number, streams[choice])
            address = openreg.caching_allocator_alloc(number, 0, streams[choice])
            starts = {segment["address"] for segment in segments}
            assert address == expected if expected is not None else address not in starts
            live[address] = number
        elif action == "release" and live.keys() != others.keys():
            ours = sorted(live.keys() - others)
            address = ours[number % len(ours)]
            openreg.caching_allocator_delete(address)
            del live[address]
        elif action == "empty":
            openreg.empty_cache()
            assert [segment for segment in segments_of(0) if is_free_for_all(segment)] == []
        check(live, segments_of(0))
    for address in live.keys() - others:
        openreg.caching_allocator_delete(address)
    openreg.empty_cache()
    assert in_use(segments_of(0)) == others
    assert (openreg.memory_reserved(), openreg.mem_get_info()[0]) == (reserved, free)


@pytest.mark.covers("module.caching_allocator_alloc")
def test_a_raw_allocation_belongs_to_its_stream_and_device():
    stream, before = openreg.Stream(1), openreg.memory_allocated(1)
    address = openreg.caching_allocator_alloc(3000, 1, stream)
    assert openreg.current_device() == 0
    assert openreg.current_stream(1) == openreg.default_stream(1)
    (segment,) = [segment for segment in segments_of(1) if address in in_use([segment])]
    assert segment["stream"] == stream.stream_id
    assert openreg.memory_allocated(1) - before == 3072
    openreg.caching_allocator_delete(address)
    assert openreg.memory_allocated(1) == before


@pytest.mark.covers("module.caching_allocator_delete")
def test_an_address_is_deleted_once_and_only_by_who_got_it():
    address = openreg.caching_allocator_alloc(3000)
    for wrong in (address + 512, 4096):
        with pytest.raises(ValueError, match="was not allocated by caching_allocator_alloc"):
            openreg.caching_allocator_delete(wrong)
    openreg.caching_allocator_delete(address)
    with pytest.raises(ValueError, match="deleted"):
        openreg.caching_allocator_delete(address)
    openreg.caching_allocator_delete(0)


def test_a_stream_of_another_device_or_of_no_kind_is_refused():
    with pytest.raises(ValueError, match=r"openreg:1.*openreg:0"):
        openreg.caching_allocator_alloc(8, 0, torch.Stream("openreg:1"))
    with pytest.raises(ValueError, match=r"openreg:1.*openreg:0"):
        openreg.caching_allocator_alloc(8, 0, openreg.Stream(1).native_handle)
    with pytest.raises(RuntimeError, match="stream 0x1000 does not exist"):
        openreg.caching_allocator_alloc(8, 0, 4096)
    with pytest.raises(TypeError, match="native_handle"):
        openreg.caching_allocator_alloc(8, 0, "fast")


@pytest.mark.covers("module.caching_allocator_alloc")
@pytest.mark.parametrize("is_default", [False, True])
def test_a_number_is_the_handle_of_a_stream_and_0_that_of_the_default_stream(is_default):
    stream = openreg.default_stream(1) if is_default else openreg.Stream(1)
    address = openreg.caching_allocator_alloc(3000, 1, 0 if is_default else stream.native_handle)
    (segment,) = [segment for segment in segments_of(1) if address in in_use([segment])]
    assert segment["stream"] == stream.stream_id
    openreg.caching_allocator_delete(address)
