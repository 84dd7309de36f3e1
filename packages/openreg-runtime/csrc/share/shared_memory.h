// SPDX-License-Identifier: BSD-3-Clause
// Storages that several processes see: what torch.multiprocessing sends instead of bytes.
//
// A storage lies inside a segment of the caching allocator, and only whole segments can be mapped elsewhere: a storage
// is sent as (handle of the segment, offset, size). The sender must not reuse the block while a receiver has it, so
// each sending has an IPC reference count (source: torch.cuda's ref_counter): a byte of device memory that the sender
// owns, 0 while the receiver holds what was sent, 1 when it has released it. Nobody can wait for it, and a receiver
// that is killed never sets it.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include <cstddef>
#include <vector>

#include "openreg.h"
#include "openreg/runtime/export.h"

namespace openreg::runtime {

struct SharedRange {
  orIpcMemHandle_t segment;
  size_t offset;  // bytes
};

struct IpcRefCount {
  orIpcMemHandle_t page;  // of reference counts of one sender and device
  size_t slot;
};

// All functions release the GIL while they wait, and are thread-safe.

// Describes the memory of a storage of this device; waits for the device first, so that what was launched there has
// been written. The storage cannot be resized any more: its block must stay. Throws c10::Error when the memory belongs
// to another process itself.
OPENREG_RUNTIME_API SharedRange share_storage(const c10::Storage& storage);

// A new reference count for something on a device. The caller keeps what it sends until the count is collected.
OPENREG_RUNTIME_API IpcRefCount new_ipc_ref_count(c10::DeviceIndex index);
// The counts whose receivers have released what was sent since the last call. They are free for others then.
OPENREG_RUNTIME_API std::vector<IpcRefCount> collect_ipc_ref_counts();

// Frees a count as if its receiver had released it; unknown ones are ignored.
OPENREG_RUNTIME_API void cancel_ipc_ref_count(const IpcRefCount& count);

// The storage of another process, not resizable. It releases the count when it dies, after all work of the device.
// Throws c10::Error when the device does not exist here, c10::ValueError when the sender has freed the memory or ended.
OPENREG_RUNTIME_API c10::Storage open_storage(c10::DeviceIndex index, const SharedRange& range, size_t size,
                                              const IpcRefCount& count);
// Releases a count for something that needs no storage of its own, because the process has it already.
OPENREG_RUNTIME_API void release_ipc_ref_count(c10::DeviceIndex index, const IpcRefCount& count);
// Releases the counts of all storages that are open: for a process that ends and takes nothing apart.
OPENREG_RUNTIME_API void release_all_ipc_ref_counts();

}  // namespace openreg::runtime
