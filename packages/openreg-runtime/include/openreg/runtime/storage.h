// SPDX-License-Identifier: BSD-3-Clause
// Resizes storages in device memory.
#pragma once

#include <c10/core/Storage.h>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// Sets the size in bytes of a storage of this device (source: at::PrivateUse1HooksInterface::resizePrivateUse1Bytes).
// Allocates new memory and enqueues a copy of the bytes that fit on the current stream of the storage's device; further
// bytes are undefined. Throws c10::Error if the storage is not resizable or not on this device, c10::OutOfMemoryError
// if the device has no room. Two threads must not resize one storage at the same time.
OPENREG_RUNTIME_API void resize_storage(c10::StorageImpl& storage, size_t new_size);

}  // namespace openreg::runtime
