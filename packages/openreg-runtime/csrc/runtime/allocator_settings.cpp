// SPDX-License-Identifier: BSD-3-Clause
#include "allocator_settings.h"

#include <c10/core/AllocatorConfig.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

namespace openreg::runtime {

namespace {

using c10::CachingAllocator::AcceleratorAllocatorConfig;
using c10::CachingAllocator::ConfigTokenizer;

constexpr const char* kFraction = "per_process_memory_fraction";

std::atomic<double>& fraction() {
  static std::atomic<double> value{1.0};
  return value;
}

double parse_fraction(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  TORCH_CHECK_VALUE(!text.empty() && *end == '\0' && value >= 0 && value <= 1, "PYTORCH_ALLOC_CONF: ", kFraction, ":",
                    text, " is not accepted; give a number from 0 to 1, such as ", kFraction, ":0.5");
  return value;
}

void parse(const std::string& settings) {
  const ConfigTokenizer tokens(settings);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == kFraction) {
      i = tokens.skipKey(i);
      fraction() = parse_fraction(tokens[i]);
    } else if (tokens[i] != ",") {
      i = tokens.skipKey(i);
    }
  }
  if (AcceleratorAllocatorConfig::use_expandable_segments()) {
    TORCH_WARN_ONCE(
        "PYTORCH_ALLOC_CONF: expandable_segments has no effect on openreg devices, whose segments have a fixed size; "
        "large_segment_size_mb and max_split_size_mb are the settings against fragmentation");
  }
}

// PyTorch has one place for the parser of the device type, which a CUDA build of torch has taken: both are called.
[[maybe_unused]] const bool registered = [] {
  auto previous = AcceleratorAllocatorConfig::getConfigParserHook();
  AcceleratorAllocatorConfig::getMutableKeys().insert(kFraction);
  AcceleratorAllocatorConfig::getConfigParserHook() = [previous](const std::string& settings) {
    if (previous) {
      previous(settings);
    }
    parse(settings);
  };
  return true;
}();

}  // namespace

void read_allocator_settings() {
  [[maybe_unused]] static const bool done = [] {
    parse(c10::CachingAllocator::getAllocatorSettings());
    return true;
  }();
}

double memory_fraction_setting() noexcept {
  return fraction().load(std::memory_order_relaxed);
}

}  // namespace openreg::runtime
