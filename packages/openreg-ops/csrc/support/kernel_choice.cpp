// SPDX-License-Identifier: BSD-3-Clause
#include "support/kernel_choice.h"

#include <c10/util/Exception.h>
#include <c10/util/env.h>

#include <string>

namespace openreg::ops {

namespace {

std::string chosen() {
  return c10::utils::get_env("OPENREG_KERNELS").value_or("aten");
}

}  // namespace

bool raw_kernels_chosen() {
  return chosen() == "raw";
}

void check_kernel_choice() {
  const std::string text = chosen();
  TORCH_CHECK_VALUE(text == "aten" || text == "raw", "environment variable OPENREG_KERNELS='", text,
                    "' is not accepted; give aten or raw or unset it, and start the process again");
}

}  // namespace openreg::ops
