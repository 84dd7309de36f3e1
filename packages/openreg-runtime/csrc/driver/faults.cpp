// SPDX-License-Identifier: BSD-3-Clause
// The fault injector.
//
// REAL HW: drivers have such switches for their own tests (the fault-injection framework of the Linux kernel, say).
#include "faults.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace openreg::driver {

namespace {

constexpr std::pair<std::string_view, FaultKind> kKinds[] = {
    {"alloc", FaultKind::kAllocation},
    {"copy", FaultKind::kCopy},
    {"launch", FaultKind::kLaunch},
    {"lose", FaultKind::kLoss},
};

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// One item, such as "copy:3@1".
bool parse_fault(std::string_view item, int device_count, Fault& fault) {
  const size_t colon = item.find(':');
  if (colon == std::string_view::npos) {
    return false;
  }
  const auto known = std::find_if(std::begin(kKinds), std::end(kKinds),
                                  [&](const auto& kind) { return kind.first == item.substr(0, colon); });
  if (known == std::end(kKinds)) {
    return false;
  }
  const std::string_view rest = item.substr(colon + 1);
  const size_t at = rest.find('@');
  fault = {known->second, 0, -1};
  if (at != std::string_view::npos &&
      (!parse_number(rest.substr(at + 1), fault.device) || fault.device < 0 || fault.device >= device_count)) {
    return false;
  }
  return parse_number(rest.substr(0, at), fault.countdown) && fault.countdown > 0;
}

}  // namespace

const char* const kFaultForm =
    "a comma-separated list of KIND:N or KIND:N@DEVICE with KIND one of alloc, copy, launch, lose, N from 1 on and an "
    "existing DEVICE, such as alloc:100,copy:3@1";

bool parse_faults(const std::string& text, int device_count, std::vector<Fault>& faults) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    Fault fault{};
    if (!parse_fault(rest.substr(0, comma), device_count, fault)) {
      return false;
    }
    faults.push_back(fault);
    if (comma == std::string_view::npos) {
      return true;
    }
    rest.remove_prefix(comma + 1);
  }
  return text.empty();
}

void Faults::arm(std::vector<Fault> faults) {
  const std::lock_guard<std::mutex> lock(mutex_);
  faults_ = std::move(faults);
  armed_ = !faults_.empty();
}

bool Faults::count(FaultKind kind, int device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  bool failing = false;
  for (Fault& fault : faults_) {
    if (fault.kind == kind && (fault.device == -1 || fault.device == device) && fault.countdown > 0) {
      failing |= --fault.countdown == 0;
    }
  }
  return failing;
}

}  // namespace openreg::driver
