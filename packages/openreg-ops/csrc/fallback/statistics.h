// SPDX-License-Identifier: BSD-3-Clause
// Statistics of operators that ran on the CPU because this device has no kernel for them, and the mode of the fallback.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace openreg::ops {

// The reaction to an operator without a kernel: run it on the CPU, run it there and warn once per operator, or throw.
enum class FallbackMode : int { kAllow, kWarn, kError };

// The calls of one operator that ran on the CPU.
struct FallbackCount {
  uint64_t calls = 0;
  uint64_t bytes = 0;  // of results copied to the device
  double seconds = 0;  // of the host, with the time for which it blocked
};

// The counts of all operators since the last reset, and the mode. There is one object in the process. Thread-safe.
class FallbackStatistics {
 public:
  // Returns the object. The first call throws c10::ValueError if OPENREG_FALLBACK is invalid.
  static FallbackStatistics& instance();

  // Sets the mode and returns the previous one. The initial mode is the value of OPENREG_FALLBACK, by default allow.
  // One mode serves the whole process, because a backward pass runs on PyTorch's own threads.
  FallbackMode exchange_mode(FallbackMode mode);

  // Throws c10::NotImplementedError, with the operator, in mode kError. Warns once per operator in mode kWarn.
  void admit(const std::string& op);
  // Adds one call of an operator, with the FallbackCount of that call.
  void add(const std::string& op, uint64_t bytes, double seconds);
  // Returns a copy of all counts, by operator.
  std::map<std::string, FallbackCount> counts() const;
  // Removes all counts, and makes each operator warn again.
  void reset();

 private:
  FallbackStatistics();

  std::atomic<FallbackMode> mode_;
  mutable std::mutex mutex_;
  std::map<std::string, FallbackCount> counts_;
  std::set<std::string> warned_;  // the operators of which a fallback has warned
};

// Parses "allow", "warn" or "error". Throws c10::ValueError, with the accepted words, for any other text.
FallbackMode parse_fallback_mode(const std::string& text);

}  // namespace openreg::ops
