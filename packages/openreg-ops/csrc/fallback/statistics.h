// SPDX-License-Identifier: BSD-3-Clause
// Statistics of operators that ran on the CPU because this device has no kernel for them, and the mode of the fallback.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace openreg::ops {

// The reaction to an operator without a kernel: run it on the CPU, warn once per operator and do so, or throw.
enum class FallbackMode : int { kAllow, kWarn, kError };

struct FallbackCount {
  uint64_t calls = 0;
  uint64_t bytes = 0;  // of results copied to the device
  double seconds = 0;  // of the host, with the time for which it blocked
};

// The number of calls, bytes and seconds of each operator, and the mode. Thread-safe.
class FallbackStatistics {
 public:
  static FallbackStatistics& instance();

  // Sets the mode and returns the previous one. The initial mode is the value of OPENREG_FALLBACK, by default allow.
  // One mode serves the whole process, because a backward pass runs on PyTorch's own threads.
  FallbackMode exchange_mode(FallbackMode mode);

  // Throws c10::NotImplementedError, with the operator, in mode kError. Warns once per operator in mode kWarn.
  void admit(const std::string& op);
  void add(const std::string& op, uint64_t bytes, double seconds);
  std::map<std::string, FallbackCount> counts() const;
  void reset();

 private:
  FallbackStatistics();

  std::atomic<FallbackMode> mode_;
  mutable std::mutex mutex_;
  std::map<std::string, FallbackCount> counts_;
  std::map<std::string, bool> warned_;
};

// Parses "allow", "warn" or "error". Throws c10::ValueError, with `source` and the accepted words, for any other text.
FallbackMode parse_fallback_mode(const std::string& text, const char* source);

}  // namespace openreg::ops
