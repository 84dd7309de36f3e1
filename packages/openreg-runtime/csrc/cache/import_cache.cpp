// SPDX-License-Identifier: BSD-3-Clause
#include "cache/import_cache.h"

#include <iterator>

namespace openreg::runtime {

std::shared_ptr<Import> ImportCache::open(int device, const orIpcMemHandle_t& handle) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto entry = imports_.begin(); entry != imports_.end();) {
    entry = entry->second.expired() ? imports_.erase(entry) : std::next(entry);
  }
  auto& entry = imports_[{device, std::string(handle.reserved, sizeof(handle.reserved))}];
  auto import = entry.lock();
  if (import == nullptr) {
    import = std::make_shared<Import>(open_(device, handle), close_);
    entry = import;
  }
  return import;
}

}  // namespace openreg::runtime
