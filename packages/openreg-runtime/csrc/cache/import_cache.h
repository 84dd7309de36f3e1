// SPDX-License-Identifier: BSD-3-Clause
// The mappings of segments (allocations of the driver) that other processes own and share with this one (IPC).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "openreg.h"

namespace openreg::runtime {

// The mapping of one segment of another process. The destructor unmaps it.
class Import {
 public:
  using Close = std::function<void(char* address)>;

  Import(char* address, const Close& close) : address_(address), close_(close) {}
  Import(const Import&) = delete;
  Import& operator=(const Import&) = delete;
  ~Import() { close_(address_); }
  char* address() const { return address_; }

 private:
  char* const address_;
  const Close& close_;
};

// A cache that maps each segment once per device. A mapping exists until the last owner of its Import releases it. The
// cache must outlive its Imports. Thread-safe. Holds its mutex while it maps a segment, but not while a segment is
// unmapped.
class ImportCache {
 public:
  using Open = std::function<char*(int device, const orIpcMemHandle_t& handle)>;

  // `open` maps a segment and returns its address, or throws if it cannot. `close` unmaps the segment at an address and
  // never throws.
  ImportCache(Open open, Import::Close close) : open_(std::move(open)), close_(std::move(close)) {}

  // Returns the mapping that `device` has of the segment; creates one if there is none. Throws the exceptions of
  // `open`.
  std::shared_ptr<Import> open(int device, const orIpcMemHandle_t& handle);

 private:
  const Open open_;
  const Import::Close close_;
  std::mutex mutex_;
  std::map<std::pair<int, std::string>, std::weak_ptr<Import>> imports_;  // by device and handle
};

}  // namespace openreg::runtime
