// SPDX-License-Identifier: BSD-3-Clause
#include "group/faults.h"

#include <array>

#include "openreg.h"
#include "openreg/runtime/status.h"

namespace openreg::distributed {

namespace {

struct Kind {
  const char* name;
  CollectiveFault fault;
};

// If several faults strike one call, the last one counts.
constexpr std::array<Kind, 3> kKinds{
    {{"delay", CollectiveFault::kDelayed}, {"drop", CollectiveFault::kDropped}, {"kill", CollectiveFault::kKilled}}};

const std::array<int, kKinds.size()>& numbers() {
  static const std::array<int, kKinds.size()> all = [] {
    std::array<int, kKinds.size()> given{};
    for (size_t i = 0; i < kKinds.size(); ++i) {
      OPENREG_CHECK(orRegisterFaultKind(&given[i], kKinds[i].name));
    }
    return given;
  }();
  return all;
}

}  // namespace

void register_faults() {
  numbers();
}

CollectiveFault next_fault(c10::Device device) {
  CollectiveFault fault = CollectiveFault::kNothing;
  for (size_t i = 0; i < kKinds.size(); ++i) {
    int strikes = 0;
    OPENREG_CHECK(orCountForFault(numbers()[i], device.index(), &strikes));
    if (strikes != 0) {
      fault = kKinds[i].fault;
    }
  }
  return fault;
}

}  // namespace openreg::distributed
