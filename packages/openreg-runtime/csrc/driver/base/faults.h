// SPDX-License-Identifier: BSD-3-Clause
// Fault injection: makes the n-th operation of a kind fail on purpose (OPENREG_FAULTS, orSetFaults()).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace openreg::driver {

// The kinds of operations that can fail. Numbers from kFirstRegisteredFault on are kinds that libraries above the
// driver have registered.
enum FaultKind : int { kAllocationFault, kCopyFault, kLaunchFault, kLossFault, kFirstRegisteredFault };

// One operation that is to fail.
struct Fault {
  int kind;
  uint64_t countdown;  // number of further operations of the kind up to the one that fails; 0 after it has failed
  int device;          // -1 for any
};

// Returns the number of the kind `name`, which it adds unless it exists. Throws Error(orErrorInvalidValue) if the name
// is malformed or too many kinds exist. Thread-safe. Takes no lock, so it is safe in a child of fork().
int register_fault_kind(const std::string& name);
// Returns the number of kinds, registered ones included. Thread-safe.
int fault_kind_count();

// Parses the format that openreg.h describes at orSetFaults() and appends to `faults`. Returns false if any part of
// `text` is malformed, a kind does not exist, or a device number is not below `device_count`.
bool parse_faults(const std::string& text, int device_count, std::vector<Fault>& faults);

// Returns a description of the format for error messages, with all existing kinds.
std::string fault_form();

// A counter of operations that selects those that fail. Thread-safe. While no fault is armed, should_fail() costs one
// relaxed load.
class Faults {
 public:
  // Replaces all faults.
  void arm(std::vector<Fault> faults);
  bool armed() const { return armed_.load(std::memory_order_relaxed); }
  // Counts one operation on `device`. Returns true if that operation is to fail.
  bool should_fail(int kind, int device) { return armed() && count(kind, device); }

 private:
  bool count(int kind, int device);

  std::atomic<bool> armed_{false};
  std::mutex mutex_;
  std::vector<Fault> faults_;
};

}  // namespace openreg::driver
