// SPDX-License-Identifier: BSD-3-Clause
#include "faults.h"

#include <array>

#include "openreg.h"
#include "openreg/runtime/status.h"

namespace openreg::distributed {

namespace {

struct Kind {
  const char* name;
  Injected injected;
};

// Of faults for one call the last one counts.
constexpr std::array<Kind, 3> kKinds{
    {{"delay", Injected::kDelayed}, {"drop", Injected::kDropped}, {"kill", Injected::kKilled}}};

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

Injected next_fault(c10::Device device) {
  Injected injected = Injected::kNothing;
  for (size_t i = 0; i < kKinds.size(); ++i) {
    int strikes = 0;
    OPENREG_CHECK(orCountForFault(numbers()[i], device.index(), &strikes));
    if (strikes != 0) {
      injected = kKinds[i].injected;
    }
  }
  return injected;
}

}  // namespace openreg::distributed
