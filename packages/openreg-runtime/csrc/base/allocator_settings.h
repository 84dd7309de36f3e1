// SPDX-License-Identifier: BSD-3-Clause
// The settings in PYTORCH_ALLOC_CONF. c10 reads the keys that every accelerator has (source:
// c10/core/AllocatorConfig.h), and this backend reads per_process_memory_fraction in addition.
#pragma once

namespace openreg::runtime {

// Reads the environment variable at the first call. Throws c10::ValueError if a key or value is invalid, and warns if a
// setting has no effect on this device. Programs make later changes by c10::CachingAllocator::setAllocatorSettings(),
// which calls this backend's parser. Thread-safe.
void read_allocator_settings();

// Returns per_process_memory_fraction, the part of a device's capacity that its caching allocator may reserve. It is
// from 0 to 1, and 1 by default. Thread-safe.
double memory_fraction_setting() noexcept;

}  // namespace openreg::runtime
