// SPDX-License-Identifier: BSD-3-Clause
// Private pools of device memory, for captures and for programs that separate allocations (source: torch.cuda.MemPool).
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <functional>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// All functions of this header are thread-safe. Those that take a device throw c10::Error if its index is out of range,
// or inside a callback of observe_memory(). Except release_pool(), they throw c10::ValueError for the id of the default
// pool.

// Returns a pool id that is unique in this process. As in PyTorch, the first number is set for the pool that a capture
// makes for itself, the second for all other pools.
OPENREG_RUNTIME_API c10::MempoolId_t make_pool_id(bool for_capture);

// Sends allocations of the device to the pool if the filter accepts the stream that is current for the allocating
// thread. They come from no other pool. Makes the pool if there is none, and adds one user. If several filters accept a
// stream, the oldest applies. The filter is called on any thread with the allocator locked. It must not allocate or
// release memory, acquire the GIL or throw.
//
// `for_capture` is true if tasks of accepted streams are recorded, not executed. Then the allocator does not wait for
// the device before end_allocate_to_pool(). Frees of blocks that other streams use are deferred, and an allocation
// without room fails at once, without the release of cached memory. Blocks of a pool that a capture has used stay
// reserved while the pool has users, because a replay writes to them.
OPENREG_RUNTIME_API void begin_allocate_to_pool(c10::DeviceIndex index, c10::MempoolId_t id,
                                                std::function<bool(c10::Stream)> filter, bool for_capture = true);
// Ends the latest begin_allocate_to_pool() of this pool. Call it after the end of the capture. Blocks stay reserved for
// the pool, and its user stays. Throws c10::Error if there is no such begin_allocate_to_pool().
OPENREG_RUNTIME_API void end_allocate_to_pool(c10::DeviceIndex index, c10::MempoolId_t id);

// Adds a user of the pool, which is made if there is none.
OPENREG_RUNTIME_API void retain_pool(c10::DeviceIndex index, c10::MempoolId_t id);
// Removes a user of the pool. Without users nothing is allocated from the pool. The next empty_cache(), or an
// allocation that finds no room, releases its free segments to the driver; the others follow after their tensors are
// freed. Throws c10::Error if the pool has no user. Does nothing in a forked child.
OPENREG_RUNTIME_API void release_pool(c10::DeviceIndex index, c10::MempoolId_t id);

}  // namespace openreg::runtime
