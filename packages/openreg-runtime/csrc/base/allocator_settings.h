// SPDX-License-Identifier: BSD-3-Clause
// PYTORCH_ALLOC_CONF: what it says to this backend beyond the keys that c10 reads for every accelerator (source:
// c10/core/AllocatorConfig.h).
#pragma once

namespace openreg::runtime {

// Reads the environment variable, once. Throws c10::ValueError on a key or value that is not accepted, and warns of
// what has no effect on this device. Later changes come through c10::CachingAllocator::setAllocatorSettings().
void read_allocator_settings();

// per_process_memory_fraction: the part of a device's capacity that its cache may hold, 0 to 1; 1 unless set.
double memory_fraction_setting() noexcept;

}  // namespace openreg::runtime
