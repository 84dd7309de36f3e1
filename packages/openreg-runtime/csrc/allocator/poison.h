// SPDX-License-Identifier: BSD-3-Clause
// OPENREG_POISON: memory is filled where its content is undefined, so that who reads it gets conspicuous numbers.
//
// A fill is work of the stream that owns the block. The one on allocation is ordered before whatever the owner does
// with the memory; in a capture it is recorded, so that each replay starts from undefined memory too. The one on
// release comes when all uses are done. It is left out while a capture is under way, which would record it, and for
// pools that a capture used, whose free blocks a replay may be writing.
#pragma once

#include <c10/core/Stream.h>

#include <cstddef>

namespace openreg::runtime {

// In every byte. It is the one byte that makes NaN in every floating type that has one (the fnuz types have another,
// and are at their lowest number), -1 in signed integers and the greatest number in unsigned ones. A number would not
// do: a small one hides in tolerances, a large one in what is divided by it. The driver uses the same for what
// orMalloc() returns.
inline constexpr int kPoison = 0xFF;

bool poison_is_on();

// Enqueues the fill of a block. Never throws: on a failed device, which skips all work, nothing is filled.
void poison(void* address, size_t size, c10::Stream stream) noexcept;

}  // namespace openreg::runtime
