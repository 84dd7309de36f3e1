// SPDX-License-Identifier: BSD-3-Clause
// Sending operators that have a kernel of ours to the CPU, for as long as it is wanted.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <vector>

namespace openreg::ops {

// While it lives, the operators ("aten::op.overload") go through the fallback, whichever kernels they have; then those
// are back. Throws c10::Error that names what is no operator. Other threads must run none of them while it is made or
// released (the dispatcher's table changes).
class FallbackOverride {
 public:
  explicit FallbackOverride(const std::vector<std::string>& operators);

  // Puts the kernels back; nothing the second time.
  void release();

 private:
  std::vector<c10::RegistrationHandleRAII> registrations_;
};

}  // namespace openreg::ops
