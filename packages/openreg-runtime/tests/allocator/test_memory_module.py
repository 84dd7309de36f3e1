# SPDX-License-Identifier: BSD-3-Clause
"""torch.openreg.memory has all functions of torch.cuda.memory, with right results."""

import sys

import pytest
import torch

from openreg_runtime import openreg

pytestmark = pytest.mark.usefixtures("clean_device")

# Names of torch.cuda.memory that have no meaning here: other allocators, processes on the card, deprecated names.
NOT_HERE = {
    "CUDAPluggableAllocator",
    "caching_allocator_disabled",
    "caching_allocator_enable",
    "change_current_allocator",
    "list_gpu_processes",
    "max_memory_cached",
    "memory_cached",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
}


@pytest.mark.covers("module.memory")
def test_the_module_has_every_name_of_cudas():
    missing = set(torch.cuda.memory.__all__) - NOT_HERE - set(openreg.memory.__all__)
    assert missing == set()
    assert not NOT_HERE & set(dir(openreg.memory))
    for name in ("_record_memory_history", "_snapshot", "_dump_snapshot", "_set_allocator_settings"):
        assert callable(getattr(openreg.memory, name))


@pytest.mark.covers("module.memory")
def test_the_device_module_re_exports_it():
    assert openreg.memory is sys.modules["openreg_runtime.openreg.memory"]
    for name in openreg.memory.__all__:
        assert getattr(openreg, name) is getattr(openreg.memory, name)
    assert set(openreg.memory.__all__) <= set(openreg.__all__)


@pytest.mark.covers("module.memory_stats_as_nested_dict")
def test_nested_statistics_are_the_flat_ones():
    pool = openreg.MemPool()
    with openreg.use_mem_pool(pool):
        storage = torch.UntypedStorage(3000, device="openreg")
    nested, flat = openreg.memory_stats_as_nested_dict(), openreg.memory_stats()
    assert flat["requested_bytes.small_pool.current"] == nested["requested_bytes"]["small_pool"]["current"] >= 3000
    first, second = pool.id
    name = f"reserved_bytes_by_private_pools.{first}_{second}.all.current"
    assert flat[name] == nested["reserved_bytes_by_private_pools"][pool.id]["all"]["current"] == 2 << 20
    common = torch.accelerator.memory_stats()
    assert {key: flat[key] for key in common} == common
    assert storage.nbytes() == 3000


@pytest.mark.covers("module.host_memory_stats_as_nested_dict")
def test_nested_host_statistics_are_the_flat_ones():
    pinned = torch.empty(5000, dtype=torch.uint8, pin_memory=True)
    nested, flat = openreg.host_memory_stats_as_nested_dict(), openreg.host_memory_stats()
    assert flat["active_bytes.current"] == nested["active_bytes"]["current"] >= 5000
    assert flat["host_alloc_time.count"] == nested["host_alloc_time"]["count"] >= 1
    assert flat["host_alloc_time.max"] >= flat["host_alloc_time.avg"]
    assert pinned.is_pinned()


@pytest.mark.covers("module.device_memory_used")
def test_used_memory_is_what_is_not_free():
    storage = torch.UntypedStorage(30 << 20, device="openreg:1")
    free, total = openreg.mem_get_info(1)
    assert openreg.device_memory_used(1) == total - free >= 30 << 20
    assert storage.nbytes() == 30 << 20


@pytest.mark.covers("module.memory_summary")
def test_the_summary_has_a_line_per_statistic_and_shows_sizes():
    openreg.empty_cache()
    storage = torch.UntypedStorage(30 << 20, device="openreg:1")
    full, short = openreg.memory_summary("openreg:1"), openreg.memory_summary(1, abbreviated=True)
    assert full.startswith("Memory of openreg:1 (")
    assert "30.0 MiB" in full
    assert "large blocks" in full
    assert "large blocks" not in short
    for text in ("held by tensors", "held by the allocator", "segments", "out of memory: ", "current", "peak"):
        assert text in full, text
        assert text in short, text
    assert storage.nbytes() == 30 << 20


def test_the_summary_works_before_first_use(succeed):
    succeed("""
        import torch, openreg_runtime
        assert torch.openreg.memory_stats_as_nested_dict() == {} == torch.openreg.memory_stats()
        assert "0 B" in torch.openreg.memory_summary()
        assert torch.openreg.memory_snapshot() == []
    """)


@pytest.mark.covers("module.get_allocator_backend")
def test_the_allocator_has_pytorchs_name():
    assert openreg.get_allocator_backend() == "native"


def test_settings_change_at_run_time():
    try:
        openreg.memory._set_allocator_settings("max_split_size_mb:64")
        assert openreg.memory_stats()["max_split_size"] == 64 << 20
    finally:
        openreg.memory._set_allocator_settings("max_split_size_mb:1048576")
    with pytest.raises(ValueError, match="Unrecognized key"):
        openreg.memory._set_allocator_settings("speed:fast")
