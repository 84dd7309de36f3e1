// SPDX-License-Identifier: BSD-3-Clause
#include "support/kernel_choice.h"

#include <c10/util/env.h>

#include "support/setting.h"

namespace openreg::ops {

namespace {

constexpr const char* kVariable = "OPENREG_KERNELS";

}  // namespace

bool raw_kernels_chosen() {
  return c10::utils::get_env(kVariable) == "raw";
}

void check_kernel_choice() {
  choice(kVariable, {"aten", "raw"});
}

}  // namespace openreg::ops
