// SPDX-License-Identifier: BSD-3-Clause
// OPENREG_POISON: memory is filled where its content is undefined, so that who reads it gets conspicuous numbers.
//
// A fill is work of the stream that owns the block. The one on allocation is ordered before whatever the owner does
// with the memory; in a capture it is recorded, so that each replay starts from undefined memory too. The one on
// release comes when all uses are done. It is left out while a capture is under way, which would record it, and for
// pools that a capture used, whose free blocks a replay may be writing.
#pragma once

#include "block.h"

namespace openreg::runtime {

// As float32: -2.87e-16. The driver uses the same for what orMalloc() returns.
inline constexpr int kAllocationPattern = 0xA5;
// As float32: 1.54e+16.
inline constexpr int kReleasePattern = 0x5A;

bool poison_is_on();

// Enqueues the fill of a block. Never throws: on a failed device, which skips all work, nothing is filled.
void poison(const Block& block, c10::DeviceIndex index, int pattern) noexcept;

}  // namespace openreg::runtime
