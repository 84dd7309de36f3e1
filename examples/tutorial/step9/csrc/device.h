// SPDX-License-Identifier: BSD-3-Clause
// The devices: how many there are, and which one is current.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/StorageImpl.h>

namespace pocket {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

// How many devices there are.
c10::DeviceIndex device_count() noexcept;

// Throws where there is no such device.
void check_device(c10::DeviceIndex index);

// The calling thread's current device.
c10::DeviceIndex current_device() noexcept;

// Makes a device current and returns the one before.
c10::DeviceIndex exchange_device(c10::DeviceIndex index);

// The allocator of all devices; it allocates on the current one.
c10::DeviceAllocator& allocator();

// The allocator of pinned host memory, and whether an address is in such memory.
c10::Allocator& pinned_allocator();
bool is_pinned(const void* address);

// Changes a storage's size and keeps what fits.
void resize_storage(c10::StorageImpl& storage, size_t nbytes);

}  // namespace pocket
