// SPDX-License-Identifier: BSD-3-Clause
// The devices: their number, and the current one.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/StorageImpl.h>

namespace pocket {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

// How many devices there are.
c10::DeviceIndex device_count() noexcept;

// Throws if there is no such device.
void check_device(c10::DeviceIndex index);

// Returns the calling thread's current device.
c10::DeviceIndex current_device() noexcept;

// Makes a device current in the calling thread and returns the previous one.
c10::DeviceIndex exchange_device(c10::DeviceIndex index);

// Returns the allocator of all devices, which allocates on the current one.
c10::DeviceAllocator& allocator();

// Returns the allocator of pinned host memory; returns true if an address is in such memory.
c10::Allocator& pinned_allocator();
bool is_pinned(const void* address);

// Changes a storage's size and keeps the bytes that fit.
void resize_storage(c10::StorageImpl& storage, size_t nbytes);

}  // namespace pocket
