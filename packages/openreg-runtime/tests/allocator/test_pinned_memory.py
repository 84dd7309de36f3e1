# SPDX-License-Identifier: BSD-3-Clause
"""Pinned host tensors can be created in every usual way, and their allocator reuses and releases memory."""

import pytest
import torch

from openreg_runtime import openreg

pytestmark = pytest.mark.usefixtures("clean_device")


@pytest.mark.covers("accelerator_hooks.isPinnedPtr", "caching_host_allocator.allocate_host_memory")
def test_pinning_copies_into_memory_that_the_device_knows(driver):
    tensor = torch.arange(1000.0)
    pinned = tensor.pin_memory()
    assert not tensor.is_pinned()
    assert pinned.is_pinned()
    assert pinned.device.type == "cpu"
    assert torch.equal(pinned, tensor)
    assert driver.attributes(pinned.data_ptr())[0].name == "orMemoryTypeHost"
    assert driver.attributes(tensor.data_ptr())[0].name == "orMemoryTypeUnmanaged"


@pytest.mark.covers("accelerator_hooks.getPinnedMemoryAllocator")
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.empty(10, pin_memory=True),
        lambda: torch.ones(3, 4, dtype=torch.int16, pin_memory=True),
        lambda: torch.ones(5).untyped_storage().pin_memory(),
        lambda: torch.ones(4, 4).pin_memory()[1:, 2],
    ],
)
def test_pinned_memory_is_made_in_every_usual_way(make):
    assert make().is_pinned()


def test_pinning_twice_gives_the_same_tensor():
    pinned = torch.ones(5).pin_memory()
    assert pinned.pin_memory().data_ptr() == pinned.data_ptr()


# Each is the first that a process does with the device.
FIRST_USES = {
    "torch.empty(10, pin_memory=True).is_pinned()": True,
    "torch.ones(10).pin_memory().is_pinned()": True,
    "torch.ones(10).is_pinned()": False,
    "torch.ones(10).untyped_storage().pin_memory().is_pinned()": True,
    "torch.utils.data._utils.pin_memory.pin_memory(torch.ones(2), 'openreg').is_pinned()": True,
}


@pytest.mark.covers("accelerator_hooks.init")
@pytest.mark.parametrize("code", FIRST_USES)
def test_pinned_memory_may_be_the_first_use_of_the_device(succeed, code):
    succeed(
        f"""
        import torch, torch.utils.data, openreg_runtime
        assert {code} is {FIRST_USES[code]}
        assert torch.openreg.is_initialized() is {FIRST_USES[code]}
        """,
    )


@pytest.mark.covers(
    "module.empty_host_cache",
    "module.host_memory_stats",
    "module.reset_peak_host_memory_stats",
    "module.reset_accumulated_host_memory_stats",
    "host_allocator.get_stats",
    "host_allocator.reset_accumulated_stats",
    "host_allocator.reset_peak_stats",
    "caching_host_allocator.free_block",
)
def test_a_freed_block_is_reused_and_given_back():
    openreg.empty_host_cache()
    before = openreg.host_memory_stats()["allocated_bytes.current"]
    openreg.reset_accumulated_host_memory_stats()
    openreg.reset_peak_host_memory_stats()
    pinned = torch.empty(5000, dtype=torch.uint8, pin_memory=True)
    address = pinned.data_ptr()
    stats = openreg.host_memory_stats()
    assert stats["active_bytes.current"] >= 5000
    assert (stats["num_host_alloc"], stats["num_host_free"]) == (1, 0)
    del pinned
    assert torch.empty(5000, dtype=torch.uint8, pin_memory=True).data_ptr() == address
    assert openreg.host_memory_stats()["num_host_alloc"] == 1
    openreg.empty_host_cache()
    stats = openreg.host_memory_stats()
    assert stats["num_host_free"] == 1
    assert stats["allocated_bytes.current"] == before
    assert stats["allocated_bytes.peak"] >= 5000
    openreg.reset_peak_host_memory_stats()
    assert openreg.host_memory_stats()["allocated_bytes.peak"] == before


def test_pinned_blocks_are_apart_and_keep_their_contents():
    tensors = [torch.full((200 + i,), i, pin_memory=True) for i in range(100)]
    for number, tensor in enumerate(tensors):
        assert tensor.eq(number).all()


@pytest.mark.covers("accelerator_hooks.getPinnedMemoryAllocator")
def test_a_loader_pins_its_batches():
    loader = torch.utils.data.DataLoader(torch.arange(8.0), batch_size=4, pin_memory=True)
    assert all(batch.is_pinned() for batch in loader)


def test_the_cache_is_given_back_where_only_pinned_memory_was_used(succeed):
    succeed("""
        import torch, openreg_runtime
        torch.ones(1 << 20).pin_memory()
        stats = torch.openreg.host_memory_stats
        assert stats()["allocated_bytes.current"] > 0
        torch.openreg.empty_host_cache()
        assert stats()["allocated_bytes.current"] == 0
    """)


def test_pinned_memory_begins_with_poison(succeed):
    succeed(
        """
        import torch, openreg_runtime
        for _ in range(2):  # fresh, and from the cache
            pinned = torch.empty(1000, pin_memory=True)
            assert pinned.isnan().all()
            pinned.fill_(1)
            del pinned
        """,
        env={"OPENREG_POISON": "1"},
    )
