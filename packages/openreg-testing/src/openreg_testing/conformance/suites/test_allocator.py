# SPDX-License-Identifier: BSD-3-Clause
"""Memory of the device: allocation, statistics, out-of-memory errors, resized storages, and pinned memory.

``@covers`` takes the keys of the rows of hooks.toml (openreg-doctor) that the test covers. A row is a hook, a name or a
registration that a backend provides and PyTorch uses. The device under test may be the CPU; tests with the fixture
``accelerator`` are then skipped.
"""

import pytest
import torch

from openreg_testing.conformance.harness import DeviceUnderTest, covers

BYTES = 1 << 22


def block(device: DeviceUnderTest) -> torch.Tensor:
    """Returns a tensor of BYTES bytes, which the statistics show."""
    return torch.empty(BYTES, dtype=torch.uint8, device=device.first)


@covers("allocator.allocate")
def test_tensors_have_memory_of_their_own(device: DeviceUnderTest) -> None:
    """The memory of a tensor belongs to no other tensor during its lifetime."""
    tensors = [torch.full((100,), float(number), device=device.first) for number in range(200)]
    assert len({tensor.data_ptr() for tensor in tensors}) == len(tensors)
    for number, tensor in enumerate(tensors):
        assert (tensor.cpu() == number).all()


@covers("allocator.allocate")
def test_memory_is_given_back(device: DeviceUnderTest) -> None:
    """Memory of deleted tensors is reused, so that a program can allocate more in total than the device has."""
    for number in range(300):
        x = torch.full((1 << 18,), float(number), device=device.first)
    assert (x.cpu() == 299).all()


@covers("allocator.allocate")
def test_no_elements_need_no_memory(device: DeviceUnderTest) -> None:
    """A tensor without elements can be created, copied and resized."""
    x = torch.empty(0, 3, device=device.first)
    assert x.cpu().shape == (0, 3)
    assert x.resize_(2, 3).shape == (2, 3)


@covers("allocator.allocate")
def test_memory_is_aligned(device: DeviceUnderTest) -> None:
    """Memory begins at a multiple of 16 bytes, as vectorized kernels require."""
    for size in (1, 3, 17, 1000):
        assert torch.empty(size, dtype=torch.uint8, device=device.first).data_ptr() % 16 == 0


@covers("device_allocator.getDeviceStats", "device_allocator.initialized")
def test_statistics_follow_allocations(accelerator: DeviceUnderTest) -> None:
    """torch.accelerator.memory_allocated() grows by the size of a new tensor, and falls when the tensor is deleted."""
    before = torch.accelerator.memory_allocated()
    x = block(accelerator)
    assert torch.accelerator.memory_allocated() >= before + BYTES
    assert torch.accelerator.memory_reserved() >= torch.accelerator.memory_allocated()
    del x
    assert torch.accelerator.memory_allocated() == before


@covers("device_allocator.resetPeakStats", "device_allocator.getDeviceStats")
def test_the_peak_is_kept_and_reset(accelerator: DeviceUnderTest) -> None:
    """max_memory_allocated() keeps the largest size until reset_peak_memory_stats()."""
    before = torch.accelerator.memory_allocated()
    x = block(accelerator)
    del x
    assert torch.accelerator.max_memory_allocated() >= before + BYTES
    torch.accelerator.reset_peak_memory_stats()
    assert torch.accelerator.max_memory_allocated() == torch.accelerator.memory_allocated()


@covers("device_allocator.resetAccumulatedStats")
def test_sums_are_reset(accelerator: DeviceUnderTest) -> None:
    """reset_accumulated_memory_stats() sets accumulated counts to zero, and keeps those of current memory."""
    x = block(accelerator)
    torch.accelerator.reset_accumulated_memory_stats()
    stats = torch.accelerator.memory_stats()
    assert stats["allocated_bytes.all.allocated"] == 0
    assert stats["allocated_bytes.all.current"] >= BYTES
    del x


@covers("device_allocator.emptyCache")
def test_the_cache_is_given_back(accelerator: DeviceUnderTest) -> None:
    """empty_cache() releases memory that no tensor uses, and keeps the memory of tensors."""
    x, kept = block(accelerator), accelerator.tensor(1, 2)
    reserved = torch.accelerator.memory_reserved()
    del x
    torch.accelerator.empty_cache()
    assert torch.accelerator.memory_reserved() < reserved
    assert kept.tolist() == [1, 2]


@covers("device_allocator.getMemoryInfo")
def test_the_device_tells_its_memory(accelerator: DeviceUnderTest) -> None:
    """get_memory_info() returns (free, total): a large allocation decreases free and does not change total."""
    torch.accelerator.empty_cache()
    free, total = torch.accelerator.get_memory_info()
    assert 0 < free <= total
    x = torch.empty(min(free // 4, 1 << 28), dtype=torch.uint8, device=accelerator.first)
    less, same = torch.accelerator.get_memory_info()
    assert same == total
    assert less < free
    del x


@covers("registration.c10::OutOfMemoryError")
def test_too_much_is_out_of_memory(accelerator: DeviceUnderTest) -> None:
    """An allocation larger than the device's memory raises torch.OutOfMemoryError, and the device stays usable."""
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 50, dtype=torch.uint8, device=accelerator.first)
    assert accelerator.tensor(1, 2).tolist() == [1, 2]


@covers("device_allocator.getDeviceStats")
def test_statistics_are_of_each_device(accelerator: DeviceUnderTest) -> None:
    """An allocation on one device does not change the statistics of another one."""
    second = accelerator.second
    before = torch.accelerator.memory_allocated(second)
    x = block(accelerator)
    assert torch.accelerator.memory_allocated(second) == before
    del x


@covers("private_use1_hooks.resizePrivateUse1Bytes")
def test_a_storage_can_be_resized(accelerator: DeviceUnderTest) -> None:
    """UntypedStorage.resize_() keeps the bytes that fit, and can free and restore a storage, as FSDP does."""
    x = accelerator.tensor(1, 2, 3, 4)
    storage = x.untyped_storage()
    storage.resize_(32)
    assert storage.nbytes() == 32
    assert x.tolist() == [1, 2, 3, 4]
    storage.resize_(0)
    assert storage.nbytes() == 0
    storage.resize_(16)
    x.fill_(5)
    assert x.tolist() == [5, 5, 5, 5]


@covers("private_use1_hooks.resizePrivateUse1Bytes")
def test_a_storage_that_cannot_grow_changes_nothing(accelerator: DeviceUnderTest) -> None:
    """If UntypedStorage.resize_() runs out of memory on another device, storage and current device are unchanged."""
    x = accelerator.tensor(1, 2, 3, 4, device=accelerator.second)
    with pytest.raises(torch.OutOfMemoryError):
        x.untyped_storage().resize_(1 << 50)
    assert torch.accelerator.current_device_index() == 0
    assert x.untyped_storage().nbytes() == 16
    assert x.tolist() == [1, 2, 3, 4]


@covers("accelerator_hooks.getPinnedMemoryAllocator", "accelerator_hooks.isPinnedPtr")
def test_memory_can_be_pinned(accelerator: DeviceUnderTest) -> None:
    """pin_memory() returns a tensor in host memory with is_pinned() true; other tensors are not pinned."""
    plain = torch.arange(10.0)
    pinned = plain.pin_memory()
    assert pinned.is_pinned()
    assert pinned[3:].is_pinned(), "a view of pinned memory is not pinned"
    assert not plain.is_pinned()
    assert torch.equal(pinned, plain)
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert pinned.to(accelerator.first, non_blocking=True).tolist() == list(range(10))


@covers("accelerator_hooks.isPinnedPtr")
def test_the_memory_of_the_device_is_not_pinned(accelerator: DeviceUnderTest) -> None:
    """A tensor on the device is not pinned."""
    assert not accelerator.tensor().is_pinned()


@covers("caching_host_allocator.record_stream", "host_allocator.record_event")
def test_pinned_memory_is_kept_for_a_copy(accelerator: DeviceUnderTest) -> None:
    """Pinned memory of a deleted tensor is not reused until copies that read it are complete."""
    for number in range(20):
        source = torch.full((1 << 16,), float(number)).pin_memory()
        there = source.to(accelerator.first, non_blocking=True)
        del source
        torch.full((1 << 16,), -1.0).pin_memory()  # would reuse the memory if it were free
        assert (there.cpu() == number).all(), "pinned memory was reused while a copy read it"


@covers("host_allocator.empty_cache")
@pytest.mark.usefixtures("accelerator")
def test_pinned_memory_is_given_back() -> None:
    """torch.accelerator.empty_host_cache() releases pinned memory that no tensor uses, and keeps that of tensors."""
    kept = torch.ones(100).pin_memory()
    torch.ones(1000).pin_memory()
    torch.accelerator.empty_host_cache()
    assert kept.is_pinned()
    assert kept.sum() == 100


@covers("accelerator_hooks.getPinnedMemoryAllocator")
def test_a_data_loader_pins(accelerator: DeviceUnderTest) -> None:
    """DataLoader(pin_memory=True) yields pinned batches."""
    data = torch.utils.data.TensorDataset(torch.arange(8.0))
    batches = [batch for (batch,) in torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True)]
    assert [batch.is_pinned() for batch in batches] == [True, True]
    assert torch.cat([batch.to(accelerator.first) for batch in batches]).tolist() == list(range(8))
