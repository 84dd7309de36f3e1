// SPDX-License-Identifier: BSD-3-Clause
// Faults that a test orders in advance (OPENREG_FAULTS, orSetFaults).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace openreg::driver {

enum class FaultKind : uint8_t { kAllocation, kCopy, kLaunch, kLoss };

struct Fault {
  FaultKind kind;
  uint64_t countdown;  // how many more operations of the kind until one fails; 0 when it has
  int device;          // -1 for any
};

// Parses the form that openreg.h gives at orSetFaults(); false unless the whole text has it. Device numbers are checked
// against `device_count`.
bool parse_faults(const std::string& text, int device_count, std::vector<Fault>& faults);

// The form as error messages give it.
extern const char* const kFaultForm;

// Counts operations and says which of them fails. Thread-safe; nearly free while nothing is armed.
class Faults {
 public:
  void arm(std::vector<Fault> faults);
  bool armed() const { return armed_.load(std::memory_order_relaxed); }
  // Counts one operation on a device; whether it is to fail.
  bool should_fail(FaultKind kind, int device) { return armed() && count(kind, device); }

 private:
  bool count(FaultKind kind, int device);

  std::atomic<bool> armed_{false};
  std::mutex mutex_;
  std::vector<Fault> faults_;
};

}  // namespace openreg::driver
