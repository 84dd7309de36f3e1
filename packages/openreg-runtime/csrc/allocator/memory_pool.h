// SPDX-License-Identifier: BSD-3-Clause
// Private pools of device memory, for captures and for users who keep memory apart (source: torch.cuda.MemPool).
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <functional>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// A name for a pool that no other pool of this process has. As PyTorch has it, the first number is set for pools that a
// capture makes for itself, the second for pools that somebody else names.
OPENREG_RUNTIME_API c10::MempoolId_t make_pool_id(bool for_capture);

// While the filter accepts the stream that is current where an allocation is made, allocations of the device come from
// the pool and from nowhere else. Makes the pool if there is none, and counts one user of it. Where several filters
// accept a stream, the first begun wins. The filter is called with the allocator locked, from any thread: it must not
// allocate or release memory, nor throw.
//
// `for_capture` says that work of accepted streams is recorded, not run. Until the end, the device is not waited for:
// freed blocks that other streams use are kept back, and an allocation without room fails at once instead of giving
// cached memory back. Blocks of a pool that a capture used are not given back while the pool has users, since a replay
// writes to them.
OPENREG_RUNTIME_API void begin_allocate_to_pool(c10::DeviceIndex index, c10::MempoolId_t id,
                                                std::function<bool(c10::Stream)> filter, bool for_capture = true);
// Ends what begin_allocate_to_pool() began last for this pool; call it when the streams do not capture any more. Blocks
// stay reserved for the pool. Throws if nothing was begun.
OPENREG_RUNTIME_API void end_allocate_to_pool(c10::DeviceIndex index, c10::MempoolId_t id);

// One more user of the pool, which is made if there is none.
OPENREG_RUNTIME_API void retain_pool(c10::DeviceIndex index, c10::MempoolId_t id);
// One user less. Without users nothing is allocated from the pool any more, and its memory goes back to the device with
// the next empty_cache() or when an allocation finds no room; what tensors hold follows when they are freed. Throws if
// the pool has no user. Does nothing in a forked child.
OPENREG_RUNTIME_API void release_pool(c10::DeviceIndex index, c10::MempoolId_t id);

}  // namespace openreg::runtime
