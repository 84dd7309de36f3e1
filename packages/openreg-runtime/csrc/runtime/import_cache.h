// SPDX-License-Identifier: BSD-3-Clause
// The segments of other processes that are mapped here.
#pragma once

#include <c10/core/Device.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "openreg.h"

namespace openreg::runtime {

// One mapped segment. Its end waits for all work of the device; in a forked child it does nothing.
class Import {
 public:
  // Throws what the driver says; c10::ValueError when the memory is gone.
  Import(c10::DeviceIndex index, const orIpcMemHandle_t& handle);
  Import(const Import&) = delete;
  Import& operator=(const Import&) = delete;
  ~Import();
  char* address() const { return address_; }

 private:
  char* address_;
};

// Maps each segment once per device, for as long as somebody holds the result. Thread-safe; waits for nothing.
class ImportCache {
 public:
  std::shared_ptr<Import> open(c10::DeviceIndex index, const orIpcMemHandle_t& handle);

 private:
  std::mutex mutex_;
  std::map<std::pair<int, std::string>, std::weak_ptr<Import>> imports_;  // by device and handle
};

}  // namespace openreg::runtime
