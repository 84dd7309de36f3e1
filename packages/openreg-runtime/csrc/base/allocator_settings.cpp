// SPDX-License-Identifier: BSD-3-Clause
#include "base/allocator_settings.h"

#include <c10/core/AllocatorConfig.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

#include "base/status_message.h"

namespace openreg::runtime {

namespace {

using c10::CachingAllocator::AcceleratorAllocatorConfig;
using c10::CachingAllocator::ConfigTokenizer;

constexpr const char* kFraction = "per_process_memory_fraction";
constexpr const char* kRuntime = "PYTORCH_ALLOC_CONF: ";  // prefix of messages about settings made at run time

std::atomic<double>& fraction() {
  static std::atomic<double> value{1.0};
  return value;
}

double parse_fraction(const std::string& text, const char* source) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  TORCH_CHECK_VALUE(!text.empty() && *end == '\0' && value >= 0 && value <= 1, source, kFraction, ":", text,
                    " is not accepted; give a number from 0 to 1, such as ", kFraction, ":0.5");
  return value;
}

void parse(const std::string& settings, const char* source) {
  const ConfigTokenizer tokens(settings);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == kFraction) {
      i = tokens.skipKey(i);
      fraction() = parse_fraction(tokens[i], source);
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

// Returns the name of the environment variable that c10 reads, which is the first one of three that is set.
const char* variable() {
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    if (std::getenv(name) != nullptr) {
      return name;
    }
  }
  return "PYTORCH_HIP_ALLOC_CONF";
}

// Returns the text of the exception that the calling catch block handles, without its final period. Also removes the
// text that c10 puts before the message for a value that it cannot split: a failed assertion, its place in the source,
// and a request to report a bug.
std::string reason() {
  std::string text = current_exception_text();
  const std::string call = "please report a bug to PyTorch. ";
  const size_t found = text.find(call);
  text.erase(0, found == std::string::npos ? 0 : found + call.size());
  text.erase(text.find_last_not_of(". \n") + 1);
  return text;
}

// Throws c10::ValueError for the variable, with the reason() of the exception that the calling catch block handles.
[[noreturn]] void refuse() {
  const char* value = std::getenv(variable());
  TORCH_CHECK_VALUE(false, "environment variable ", variable(), "='", value == nullptr ? "" : value,
                    "' is not accepted: ", reason(),
                    "; correct it (the form is key:value,key:value) or unset it, and start the process again");
}

// Returns the settings that c10 holds. Throws c10::ValueError if the variable is invalid, because c10 parses it at the
// first call, and again at each call until that succeeds.
std::string current_settings() {
  try {
    return c10::CachingAllocator::getAllocatorSettings();
  } catch (...) {
    refuse();
  }
}

void read() {
  const std::string settings = current_settings();
  const char* value = std::getenv(variable());
  if (value == nullptr || settings != value) {  // set at run time, where invalid settings throw
    parse(settings, kRuntime);
    return;
  }
  try {
    parse(settings, "");
  } catch (...) {
    refuse();
  }
}

// Calls the previous parser, too, because PyTorch has one hook for parsers, which a CUDA build of torch already uses.
[[maybe_unused]] const bool settings_are_registered = [] {
  auto previous = AcceleratorAllocatorConfig::getConfigParserHook();
  AcceleratorAllocatorConfig::getMutableKeys().insert(kFraction);
  AcceleratorAllocatorConfig::getConfigParserHook() = [previous](const std::string& settings) {
    parse(settings, kRuntime);  // first, so that a value that both reject has this backend's message
    if (previous) {
      previous(settings);
    }
  };
  return true;
}();

}  // namespace

void read_allocator_settings() {
  [[maybe_unused]] static const bool done = [] {
    read();
    return true;
  }();
}

double memory_fraction_setting() noexcept {
  return fraction().load(std::memory_order_relaxed);
}

}  // namespace openreg::runtime
