// SPDX-License-Identifier: BSD-3-Clause
// A temporary redirection to the fallback, for operators that have a kernel for this device.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <vector>

namespace openreg::ops {

// A registration that makes the operators ("aten::op.overload") use the fallback, whichever kernels they have.
// release() and the destructor restore the kernels. Throws c10::Error, with the name, if there is no such operator. No
// other thread may call these operators during construction and release, because the dispatcher's table changes.
class FallbackOverride {
 public:
  explicit FallbackOverride(const std::vector<std::string>& operators);

  // Restores the kernels. A second call does nothing.
  void release();

 private:
  std::vector<c10::RegistrationHandleRAII> registrations_;
};

}  // namespace openreg::ops
