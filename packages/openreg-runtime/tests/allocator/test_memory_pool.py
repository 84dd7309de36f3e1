# SPDX-License-Identifier: BSD-3-Clause
"""Allocations inside of use_mem_pool() come from that MemPool and from no other."""

import threading

import pytest
import torch

from openreg_runtime import _C, openreg

pytestmark = pytest.mark.usefixtures("clean_device")

MIB = 1 << 20


def allocate(size, device="openreg:0"):
    return torch.UntypedStorage(size, device=device)


def pool_reserved(pool, device=0):
    stats = openreg.memory_stats_as_nested_dict(device)["reserved_bytes_by_private_pools"]
    return stats.get(pool.id, {"all": {"current": 0}})["all"]["current"]


@pytest.mark.covers("module.MemPool", "module.use_mem_pool")
def test_allocations_inside_come_from_the_pool_and_others_do_not():
    pool = openreg.MemPool()
    outside = allocate(3000)
    with openreg.use_mem_pool(pool):
        inside = allocate(3000)
    after = allocate(3000)
    (segment,) = pool.snapshot()
    assert segment["segment_pool_id"] == pool.id
    start, end = segment["address"], segment["address"] + segment["total_size"]
    assert start <= inside.data_ptr() < end
    assert not any(start <= storage.data_ptr() < end for storage in (outside, after))
    assert pool_reserved(pool) == segment["total_size"]


def test_free_blocks_of_a_pool_serve_it_alone():
    pool = openreg.MemPool()
    with openreg.use_mem_pool(pool):
        address = allocate(3000).data_ptr()
    others = [allocate(3000) for _ in range(3)]
    assert address not in [storage.data_ptr() for storage in others]
    with openreg.use_mem_pool(pool):
        assert allocate(3000).data_ptr() == address


def test_a_pool_serves_the_named_device_and_the_calling_thread():
    pool = openreg.MemPool()
    made = []
    with openreg.use_mem_pool(pool, device=1):
        allocate(3000, "openreg:0")
        thread = threading.Thread(target=lambda: made.append(allocate(3000, "openreg:1")))
        thread.start()
        thread.join()
        assert pool.snapshot() == []
        inside = allocate(3000, "openreg:1")
    assert [segment["device"] for segment in pool.snapshot()] == [1]
    assert inside.device.index == made[0].device.index == 1


def test_the_first_pool_entered_serves_where_two_are():
    first, second = openreg.MemPool(), openreg.MemPool()
    with openreg.use_mem_pool(first), openreg.use_mem_pool(second):
        allocate(3000)
    assert pool_reserved(first) > 0
    assert pool_reserved(second) == 0


def test_memory_of_a_pool_that_is_gone_goes_back_with_the_cache():
    free = openreg.mem_get_info()[0]
    pool = openreg.MemPool()
    with openreg.use_mem_pool(pool):
        kept, dropped = allocate(30 * MIB), allocate(30 * MIB)
    del dropped
    openreg.empty_cache()
    assert pool_reserved(pool) == 60 * MIB  # the pool is in use
    identity = pool.id
    del pool
    openreg.empty_cache()
    assert free - openreg.mem_get_info()[0] == 30 * MIB  # a tensor is in it
    del kept
    openreg.empty_cache()
    assert openreg.mem_get_info()[0] == free
    stats = openreg.memory_stats()
    name = "reserved_bytes_by_private_pools.{}_{}.all".format(*identity)
    assert stats[f"{name}.current"] == 0
    assert stats[f"{name}.peak"] == 60 * MIB


def test_a_pool_can_be_emptied_alone():
    pool = openreg.MemPool()
    with openreg.use_mem_pool(pool):
        allocate(30 * MIB)
    allocate(25 * MIB)
    reserved = openreg.memory_reserved()
    pool.empty()
    assert pool_reserved(pool) == 0
    assert openreg.memory_reserved() == reserved - 30 * MIB
    with openreg.use_mem_pool(pool):
        assert allocate(3000).nbytes() == 3000


def test_an_allocation_without_room_takes_the_memory_of_pools_that_are_gone(succeed):
    succeed(
        """
        import torch, openreg_runtime
        pool = torch.openreg.MemPool()
        with torch.openreg.use_mem_pool(pool):
            torch.UntypedStorage(50 << 20, device="openreg")
        try:
            torch.UntypedStorage(50 << 20, device="openreg")
        except torch.OutOfMemoryError:
            pass
        else:
            raise AssertionError("the pool is in use")
        del pool
        torch.UntypedStorage(50 << 20, device="openreg")
        """,
        env={"OPENREG_DEVICE_MEMORY": "64MiB"},
    )


def test_every_pool_has_an_id_of_its_own():
    pools = [openreg.MemPool() for _ in range(5)]
    assert len({pool.id for pool in pools}) == 5
    assert all(first == 0 and second > 0 for first, second in (pool.id for pool in pools))
    assert _C._make_pool_id(True)[1] == 0


@pytest.mark.covers("module.MemPool")
def test_options_of_cudas_pools_are_accepted_where_they_change_nothing():
    assert openreg.MemPool(None, use_on_oom=False, no_split=False).snapshot() == []
    for option in ({"allocator": object()}, {"use_on_oom": True}, {"no_split": True}):
        with pytest.raises(NotImplementedError, match=f"MemPool: {next(iter(option))}=.*leave out"):
            openreg.MemPool(**option)


def test_what_does_not_fit_together_is_refused():
    pool = openreg.MemPool()
    with pytest.raises(RuntimeError, match=r"memory pool \(0, \d+\) of openreg:0"):
        _C._end_allocate_to_pool(0, pool.id)
    with pytest.raises(RuntimeError, match="no user"):
        _C._release_pool(0, (0, 10**9))
    with pytest.raises(ValueError, match="default pool"):
        _C._retain_pool(0, (0, 0))
    with pytest.raises(RuntimeError, match="out of range"), openreg.use_mem_pool(pool, 9):
        pass
