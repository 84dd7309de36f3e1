// SPDX-License-Identifier: BSD-3-Clause
// Storages that are shared between processes: torch.multiprocessing sends handles of them instead of bytes.
//
// A storage is a block of the caching allocator, a part of a segment, and another process can map only whole segments.
// So a storage is sent as (handle of the segment, offset, size). The sender must not reuse the block while a receiver
// uses it, so each message has an IPC reference count (source: ref_counter in torch.cuda). A count is a byte of device
// memory that the sender owns, and works as a flag: it is 0 while the receiver uses the storage, and 1 after the
// receiver has released it. No call can wait for a count, so the sender reads its counts from time to time. Those of a
// receiver that was killed stay 0.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include <cstddef>
#include <vector>

#include "openreg.h"
#include "openreg/runtime/export.h"

namespace openreg::runtime {

// The place of a storage in a segment of its process.
struct SharedRange {
  orIpcMemHandle_t segment;
  size_t offset;  // in bytes from the start of the segment
};

// The place of an IPC reference count.
struct IpcRefCount {
  orIpcMemHandle_t page;  // a page of reference counts of one sender and one device
  size_t slot;            // index of the count's byte in the page
};

// All functions are thread-safe and release the GIL while they block.

// Returns the place of a storage on an openreg device. Blocks first until all tasks of the device are complete, so that
// their results are in memory. Makes the storage not resizable, because its address must not change. Throws c10::Error
// if the storage is not on an openreg device, or if another process owns its memory.
OPENREG_RUNTIME_API SharedRange share_storage(const c10::Storage& storage);

// Returns a new reference count for a storage on a device. The caller keeps the storage alive until
// collect_ipc_ref_counts() returns the count. Throws c10::Error if the index is out of range or the device cannot share
// memory.
OPENREG_RUNTIME_API IpcRefCount new_ipc_ref_count(c10::DeviceIndex index);
// Returns the counts that receivers have released since the last call, and frees them for reuse. Skips failed devices.
OPENREG_RUNTIME_API std::vector<IpcRefCount> collect_ipc_ref_counts();

// Frees a count for reuse, although no receiver has released it. Ignores unknown counts.
OPENREG_RUNTIME_API void cancel_ipc_ref_count(const IpcRefCount& count);

// Maps a storage of another process on a device and returns it, not resizable. `size` is in bytes. When the storage is
// freed, it releases the count after all tasks of the device are complete. Throws c10::Error if the device does not
// exist here, c10::ValueError if the sender has freed the memory or has ended.
OPENREG_RUNTIME_API c10::Storage open_storage(c10::DeviceIndex index, const SharedRange& range, size_t size,
                                              const IpcRefCount& count);
// Releases a count of a message for which open_storage() is not called, because this process has the storage already.
// Throws the errors of open_storage().
OPENREG_RUNTIME_API void release_ipc_ref_count(c10::DeviceIndex index, const IpcRefCount& count);
// Releases the counts of all received storages, for a process that ends without freeing them. The storages must not be
// used any more.
OPENREG_RUNTIME_API void release_all_ipc_ref_counts();

}  // namespace openreg::runtime
