// SPDX-License-Identifier: BSD-3-Clause
#include "fallback/statistics.h"

#include <c10/util/Exception.h>

#include "support/setting.h"

namespace openreg::ops {

FallbackMode parse_fallback_mode(const std::string& text) {
  if (text == "allow") {
    return FallbackMode::kAllow;
  }
  if (text == "warn") {
    return FallbackMode::kWarn;
  }
  TORCH_CHECK_VALUE(text == "error", "fallback mode='", text, "' is not accepted; give allow, warn or error");
  return FallbackMode::kError;
}

FallbackStatistics& FallbackStatistics::instance() {
  static auto* const statistics = new FallbackStatistics();
  return *statistics;
}

FallbackStatistics::FallbackStatistics()
    : mode_(parse_fallback_mode(choice("OPENREG_FALLBACK", {"allow", "warn", "error"}))) {}

FallbackMode FallbackStatistics::exchange_mode(FallbackMode mode) {
  return mode_.exchange(mode);
}

void FallbackStatistics::admit(const std::string& op) {
  const FallbackMode current = mode_.load(std::memory_order_relaxed);
  TORCH_CHECK_NOT_IMPLEMENTED(
      current != FallbackMode::kError, "operator ", op,
      " has no kernel for the openreg device, and falling back to the CPU is refused. Allow it with "
      "torch.openreg.fallback_mode('allow') or OPENREG_FALLBACK=allow, or run this operator on the CPU.");
  if (current != FallbackMode::kWarn) {
    return;
  }
  bool first = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    first = warned_.insert(op).second;
  }
  if (first) {
    TORCH_WARN("operator ", op,
               " has no kernel for the openreg device and runs on the CPU, which waits for the device; "
               "torch.openreg.fallback_stats() counts such calls");
  }
}

void FallbackStatistics::add(const std::string& op, uint64_t bytes, double seconds) {
  const std::lock_guard<std::mutex> lock(mutex_);
  FallbackCount& count = counts_[op];
  ++count.calls;
  count.bytes += bytes;
  count.seconds += seconds;
}

std::map<std::string, FallbackCount> FallbackStatistics::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

void FallbackStatistics::reset() {
  const std::lock_guard<std::mutex> lock(mutex_);
  counts_.clear();
  warned_.clear();
}

}  // namespace openreg::ops
