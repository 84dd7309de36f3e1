// SPDX-License-Identifier: BSD-3-Clause
// The segments of other processes that are mapped here.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "openreg.h"

namespace openreg::runtime {

// One mapped segment, which its end unmaps.
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

// Maps each segment once per device, for as long as somebody holds the result. Outlives what it returns. Thread-safe;
// its lock is held while a segment is mapped, not while one is unmapped.
class ImportCache {
 public:
  using Open = std::function<char*(int device, const orIpcMemHandle_t& handle)>;

  // `open` throws where nothing can be mapped, `close` never.
  ImportCache(Open open, Import::Close close) : open_(std::move(open)), close_(std::move(close)) {}

  // Throws what `open` throws.
  std::shared_ptr<Import> open(int device, const orIpcMemHandle_t& handle);

 private:
  const Open open_;
  const Import::Close close_;
  std::mutex mutex_;
  std::map<std::pair<int, std::string>, std::weak_ptr<Import>> imports_;  // by device and handle
};

}  // namespace openreg::runtime
