// SPDX-License-Identifier: BSD-3-Clause
// copy_memory() copies memory as the engines do: large ranges with two threads, and on x86-64 the largest ones with
// stores that bypass the processor's caches.
#pragma once

#include <cstddef>

namespace openreg::driver {

// Copies `size` bytes, as memmove() does. Ranges that overlap are copied by the calling thread alone. Thread-safe.
void copy_memory(void* destination, const void* source, size_t size) noexcept;

}  // namespace openreg::driver
