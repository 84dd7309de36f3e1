// SPDX-License-Identifier: BSD-3-Clause
#include "import_cache.h"

#include "openreg/runtime/device.h"
#include "openreg/runtime/status.h"

namespace openreg::runtime {

namespace {

char* open_segment(c10::DeviceIndex index, const orIpcMemHandle_t& handle) {
  const CurrentDevice current(index);
  void* address = nullptr;
  OPENREG_CHECK(orIpcOpenMemHandle(&address, handle, 0));
  return static_cast<char*>(address);
}

}  // namespace

Import::Import(c10::DeviceIndex index, const orIpcMemHandle_t& handle) : address_(open_segment(index, handle)) {}

Import::~Import() {
  OPENREG_WARN(orIpcCloseMemHandle(address_));
}

std::shared_ptr<Import> ImportCache::open(c10::DeviceIndex index, const orIpcMemHandle_t& handle) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto entry = imports_.begin(); entry != imports_.end();) {
    entry = entry->second.expired() ? imports_.erase(entry) : std::next(entry);
  }
  auto& entry = imports_[{index, std::string(handle.reserved, sizeof(handle.reserved))}];
  auto import = entry.lock();
  if (import == nullptr) {
    import = std::make_shared<Import>(index, handle);
    entry = import;
  }
  return import;
}

}  // namespace openreg::runtime
