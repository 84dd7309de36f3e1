// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/storage.h"

#include <algorithm>

#include "base/enqueue.h"
#include "openreg.h"
#include "openreg/runtime/allocator.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/stream.h"

namespace openreg::runtime {

namespace {

c10::DataPtr allocate_for_storage(c10::DeviceIndex index, size_t size) {
  const CurrentDeviceGuard current(index);
  return device_allocator().allocate(size);
}

}  // namespace

void resize_storage(c10::StorageImpl& storage, size_t new_size) {
  TORCH_CHECK(storage.device_type() == kDeviceType,
              "resize_storage: expected a storage on an openreg device, but got one on ", storage.device());
  TORCH_CHECK(storage.resizable(), "Trying to resize storage that is not resizable (on ", storage.device(), ")");
  const c10::DeviceIndex index = storage.device().index();
  c10::DataPtr data = allocate_for_storage(index, new_size);
  const size_t kept = std::min(storage.nbytes(), new_size);
  if (kept > 0) {
    const orStream_t stream = native_handle(current_stream(index));
    OPENREG_CHECK(enqueue_without_gil(
        [&] { return orMemcpyAsync(data.get(), storage.data(), kept, orMemcpyDeviceToDevice, stream); }));
  }
  // The old block may belong to another stream, whose later tasks must not overwrite it before it is copied.
  device_allocator().recordStream(storage.data_ptr(), current_stream(index));
  storage.set_data_ptr_noswap(std::move(data));
  storage.set_nbytes(new_size);
}

}  // namespace openreg::runtime
