// SPDX-License-Identifier: BSD-3-Clause
#include "launch/kernel_traits.h"

namespace openreg::ops {

void throw_dtype_mismatch(const char* name, c10::ScalarType expected, c10::ScalarType found) {
  TORCH_CHECK(false, name, ": the operands should have the same dtype: expected scalar type ", expected, " but found ",
              found, "; convert the operand with .to(dtype)");
}

}  // namespace openreg::ops
