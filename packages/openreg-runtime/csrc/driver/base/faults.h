// SPDX-License-Identifier: BSD-3-Clause
// Faults that a test orders in advance (OPENREG_FAULTS, orSetFaults).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace openreg::driver {

// What may fail. Kinds behind these are those that libraries above the driver have registered.
enum FaultKind : int { kAllocationFault, kCopyFault, kLaunchFault, kLossFault, kFirstRegisteredFault };

struct Fault {
  int kind;
  uint64_t countdown;  // how many more operations of the kind until one fails; 0 when it has
  int device;          // -1 for any
};

// A kind of that name, which is a new one or was registered before. Throws Error(orErrorInvalidValue) for a name that
// does not fit the form, and where there are too many. Thread-safe, and safe in a child of fork(): takes no lock.
int register_fault_kind(const std::string& name);
// The number of kinds there are.
int fault_kind_count();

// Parses the form that openreg.h gives at orSetFaults(); false unless the whole text has it. Device numbers are checked
// against `device_count`, and kinds against those that there are.
bool parse_faults(const std::string& text, int device_count, std::vector<Fault>& faults);

// The form as error messages give it, with the kinds that there are.
std::string fault_form();

// Counts operations and says which of them fails. Thread-safe; nearly free while nothing is armed.
class Faults {
 public:
  void arm(std::vector<Fault> faults);
  bool armed() const { return armed_.load(std::memory_order_relaxed); }
  // Counts one operation on a device; whether it is to fail.
  bool should_fail(int kind, int device) { return armed() && count(kind, device); }

 private:
  bool count(int kind, int device);

  std::atomic<bool> armed_{false};
  std::mutex mutex_;
  std::vector<Fault> faults_;
};

}  // namespace openreg::driver
