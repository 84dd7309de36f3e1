// SPDX-License-Identifier: BSD-3-Clause
// The record of operators that ran on the CPU because this device has no kernel for them.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace openreg::ops {

// What an operator without a kernel does: runs on the CPU, does so with a warning per operator, or is refused.
enum class FallbackMode : int { kAllow, kWarn, kError };

struct FallbackCount {
  uint64_t calls = 0;
  uint64_t bytes = 0;  // of results copied to the device
  double seconds = 0;  // that the host spent, waiting included
};

// Thread-safe.
class FallbackStatistics {
 public:
  static FallbackStatistics& instance();

  // At first the mode is what OPENREG_FALLBACK says, default allow. One for the process, because a backward pass runs
  // on threads of PyTorch's own.
  FallbackMode exchange_mode(FallbackMode mode);

  // Throws c10::Error that names the operator when the mode refuses it; warns once per operator in warn mode.
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

// "allow", "warn" or "error"; throws c10::ValueError that names `source` and the accepted words for another text.
FallbackMode parse_fallback_mode(const std::string& text, const char* source);

}  // namespace openreg::ops
