// SPDX-License-Identifier: BSD-3-Clause
// Findings: wrong uses of memory, which the sanitizer reports, and the list of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "access.h"
#include "ordering.h"

namespace openreg::sanitizer {

enum class FindingKind : uint8_t {
  kRace,           // two accesses without an order
  kReuse,          // an access to memory whose earlier allocation another stream still uses
  kUseAfterFree,   // an access to memory that was freed
  kUninitialized,  // a read of bytes that nothing has written
  kHostRead,       // the host reads pinned memory before the copy into it is complete
  kHostWrite,      // the host changes pinned memory before the copy that uses it is complete
  kGraphInput,     // a graph is replayed after memory that it uses was freed
  kOutOfBounds,    // a kernel has changed bytes after its operand's allocation
  kPoison,         // the host reads a value that was computed from poisoned memory
  kFreedInUse,     // memory is freed while a stream uses it without a record_stream(); only a warning
};

// A wrong access, alone or together with an earlier one. Each access has the record of its allocation (Life, access.h).
// kUninitialized, kUseAfterFree, kGraphInput, kOutOfBounds and kPoison have no first access: its site (place in the
// program, sites.h) is 0.
struct Violation {
  FindingKind kind;
  Access first;
  Life first_life;
  Access second;
  Life second_life;
};

// All violations of one kind between the same two sites, represented by the first of them.
struct Finding {
  Violation violation;
  StreamName first_stream;
  StreamName second_stream;  // device -1 for an access of the host
  uint64_t count = 1;        // number of violations
};

// The findings of the process, in the order in which they happened. The caller holds the sanitizer's mutex.
class FindingList {
 public:
  static constexpr size_t kMaxFindings = 100000;  // further ones are dropped

  // Adds a violation: counts a finding again, or makes a new one.
  void add(const Violation& violation, const StreamName& first_stream, const StreamName& second_stream);
  // From now on, a violation like an earlier one starts a new finding instead of raising the count of the old one.
  // Called when a session (openreg_sanitizer.sanitizer in Python) begins.
  void renew() { numbers_.clear(); }

  // Returns true if a finding that is no warning was added since the last call.
  bool take_news();
  size_t size() const { return findings_.size(); }
  // Returns the findings from the number `begin` on.
  std::vector<Finding> from(size_t begin) const;
  // Returns the numbers of violations, by finding.
  std::vector<uint64_t> counts() const;

 private:
  std::vector<Finding> findings_;
  std::map<std::tuple<FindingKind, uint32_t, uint32_t>, size_t> numbers_;  // by kind and sites
  bool has_news_ = false;
};

}  // namespace openreg::sanitizer
