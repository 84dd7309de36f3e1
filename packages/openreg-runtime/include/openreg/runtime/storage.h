// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/Storage.h>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// Gives a storage of this device another size in bytes. The bytes that fit are copied on the current stream of its
// device; new ones are undefined. Throws c10::Error when the storage is not resizable or belongs to another device.
OPENREG_RUNTIME_API void resize_storage(c10::StorageImpl& storage, size_t new_size);

}  // namespace openreg::runtime
