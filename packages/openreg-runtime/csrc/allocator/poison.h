// SPDX-License-Identifier: BSD-3-Clause
// Poison (OPENREG_POISON): memory with undefined content is filled with a pattern, so that reads of it are conspicuous.
//
// A block is filled when it is allocated and when it is released. A fill is a task of the stream that owns the block.
// The fill at allocation precedes all other tasks that use the block. In a capture it is recorded, so that each replay
// begins with poisoned memory, too. The fill at release is enqueued when no stream uses the block any more. It is
// omitted during a capture, which would record it. It is also omitted for pools that a capture has used, because a
// replay may be writing to their free blocks. Pinned memory is filled by the host when it is allocated, so that a copy
// into it that the host does not wait for is conspicuous.
#pragma once

#include <c10/core/Stream.h>

#include <cstddef>

namespace openreg::runtime {

// The poison byte. Memory filled with it reads as NaN in every floating-point type except the float8 types whose names
// end with fnuz, in which it reads as the lowest number. It reads as -1 in signed integers and as the greatest number
// in unsigned ones. Ordinary numbers would be less conspicuous, because a small one is within tolerances, and a large
// one vanishes as a divisor. The driver fills the memory of orMalloc() with this byte, too.
inline constexpr int kPoison = 0xFF;

// Returns true if OPENREG_POISON is 1. Thread-safe.
bool poison_is_on();

// Enqueues the fill of a block with kPoison; `size` is in bytes. Fills nothing on a failed device, which skips all
// tasks. Thread-safe.
void poison(void* address, size_t size, c10::Stream stream) noexcept;

// Same as poison(), except that it fills the red zone of a block with kRedZoneByte. A red zone is a range of bytes
// after an allocation, which a tool has requested (ToolHooks::red_zone) to detect kernels that write beyond it.
void fill_red_zone(void* address, size_t size, c10::Stream stream) noexcept;

}  // namespace openreg::runtime
