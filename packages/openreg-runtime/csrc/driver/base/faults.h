// SPDX-License-Identifier: BSD-3-Clause
// Fault injection makes the n-th operation of a kind fail on purpose, so that tests can reach error paths.
// OPENREG_FAULTS and orSetFaults() select these operations.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace openreg::driver {

// The kinds of operations that can fail. Numbers from kFirstRegisteredFault on are kinds that libraries above the
// driver have added with orRegisterFaultKind().
enum FaultKind : int { kAllocationFault, kCopyFault, kLaunchFault, kLossFault, kFirstRegisteredFault };

// One operation that is to fail.
struct Fault {
  int kind;            // a FaultKind, or the number of a registered kind
  uint64_t countdown;  // 1 if the next operation of the kind fails, 2 if the second, ...; 0 after the failure
  int device;          // -1 for any
};

// Returns the number of the kind `name`, and adds the kind unless it exists. Throws Error(orErrorInvalidValue) if the
// name is malformed or too many kinds exist. Thread-safe. Takes no lock, so it is safe in a child of fork().
int register_fault_kind(const std::string& name);
// Returns the number of kinds, registered ones included. Thread-safe.
int fault_kind_count();

// Parses the format that openreg.h describes at orSetFaults(), and appends each item to `faults`. Returns false at the
// first item that is malformed, names an unknown kind, or has a device index that is not below `device_count`.
bool parse_faults(const std::string& text, int device_count, std::vector<Fault>& faults);

// Returns a description of the format for error messages. It lists all existing kinds.
std::string fault_form();

// The armed faults, which count operations and select those that fail. Thread-safe. While no fault is armed,
// should_fail() costs one relaxed atomic load.
class Faults {
 public:
  // Replaces all faults, including their counts.
  void arm(std::vector<Fault> faults);
  bool armed() const { return armed_.load(std::memory_order_relaxed); }
  // Counts one operation of the kind on `device`. Returns true if that operation must fail.
  bool should_fail(int kind, int device) { return armed() && count(kind, device); }

 private:
  bool count(int kind, int device);

  std::atomic<bool> armed_{false};
  std::mutex mutex_;
  std::vector<Fault> faults_;
};

}  // namespace openreg::driver
