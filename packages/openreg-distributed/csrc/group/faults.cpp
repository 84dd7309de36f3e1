// SPDX-License-Identifier: BSD-3-Clause
#include "group/faults.h"

#include <array>

#include "openreg.h"
#include "openreg/runtime/status.h"

namespace openreg::distributed {

namespace {

// A fault and its name in OPENREG_FAULTS.
struct NamedFault {
  const char* name;
  CollectiveFault fault;
};

// If several faults apply to one call, the last one of this list is injected.
constexpr std::array<NamedFault, 3> kNamedFaults{
    {{"delay", CollectiveFault::kDelayed}, {"drop", CollectiveFault::kDropped}, {"kill", CollectiveFault::kKilled}}};

// Returns the driver's numbers of the fault kinds, in the order of kNamedFaults. The first call registers them.
const std::array<int, kNamedFaults.size()>& numbers() {
  static const std::array<int, kNamedFaults.size()> all = [] {
    std::array<int, kNamedFaults.size()> given{};
    for (size_t i = 0; i < kNamedFaults.size(); ++i) {
      OPENREG_CHECK(orRegisterFaultKind(&given[i], kNamedFaults[i].name));
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
  for (size_t i = 0; i < kNamedFaults.size(); ++i) {
    int must_fail = 0;
    OPENREG_CHECK(orCountForFault(numbers()[i], device.index(), &must_fail));
    if (must_fail != 0) {
      fault = kNamedFaults[i].fault;
    }
  }
  return fault;
}

}  // namespace openreg::distributed
