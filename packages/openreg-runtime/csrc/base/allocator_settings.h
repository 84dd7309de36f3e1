// SPDX-License-Identifier: BSD-3-Clause
// The keys of PYTORCH_ALLOC_CONF that only this backend reads, beyond those that c10 reads for every accelerator
// (source: c10/core/AllocatorConfig.h).
#pragma once

namespace openreg::runtime {

// Reads the environment variable, once. Throws c10::ValueError if a key or value is invalid, and warns about keys
// without effect on this device. Later changes arrive through c10::CachingAllocator::setAllocatorSettings().
// Thread-safe.
void read_allocator_settings();

// Returns per_process_memory_fraction: the fraction of a device's capacity that its caching allocator may reserve, from
// 0 to 1, by default 1. Thread-safe.
double memory_fraction_setting() noexcept;

}  // namespace openreg::runtime
