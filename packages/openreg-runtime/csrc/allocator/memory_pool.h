// SPDX-License-Identifier: BSD-3-Clause
// Private pools of device memory, for captures and for programs that separate allocations (source: torch.cuda.MemPool).
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <functional>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// A pool exists while it has users, filters or segments. Its users are, for example, a graph or a
// torch.openreg.MemPool. A filter directs allocations to it (begin_allocate_to_pool()). A segment is one allocation of
// the driver.
//
// All functions of this header are thread-safe. Those that take a device throw c10::Error if its index is out of range,
// or inside a callback of observe_memory(). All except release_pool() throw c10::ValueError for the id of the default
// pool.

// Returns a pool id that is unique in this process. As in PyTorch, the first number is set for the pool that a capture
// makes for itself, the second for all other pools.
OPENREG_RUNTIME_API c10::MempoolId_t make_pool_id(bool for_capture);

// Serves allocations of the device only from the pool if the filter accepts the stream that is current for the
// allocating thread. Makes the pool if there is none, and adds one user. If several filters accept a stream, the oldest
// applies. The filter is called on the allocating thread while the allocator is locked. It must not allocate or release
// memory, acquire the GIL or throw.
//
// `for_capture` is true if tasks of accepted streams are recorded, not executed. Then the allocator does not wait for
// the device before end_allocate_to_pool(). Frees of blocks that other streams use are deferred, and an allocation
// without room fails at once, without the release of cached memory. Blocks of a pool that a capture has used stay
// reserved while the pool has users, because a replay writes to them.
OPENREG_RUNTIME_API void begin_allocate_to_pool(c10::DeviceIndex index, c10::MempoolId_t id,
                                                std::function<bool(c10::Stream)> filter, bool for_capture = true);
// Removes the filter of the latest begin_allocate_to_pool() of this pool, but not the user that it added. Call it after
// the end of the capture. Blocks stay reserved for the pool. Throws c10::Error if the pool has no filter.
OPENREG_RUNTIME_API void end_allocate_to_pool(c10::DeviceIndex index, c10::MempoolId_t id);

// Adds a user of the pool, which is made if there is none.
OPENREG_RUNTIME_API void retain_pool(c10::DeviceIndex index, c10::MempoolId_t id);
// Removes a user of the pool. The free segments of a pool without users are released to the driver by the next
// empty_cache(), or by an allocation that finds no room. Its other segments are released in the same way after their
// tensors are freed. Throws c10::Error if the pool has no user. Does nothing in a forked child.
OPENREG_RUNTIME_API void release_pool(c10::DeviceIndex index, c10::MempoolId_t id);

}  // namespace openreg::runtime
