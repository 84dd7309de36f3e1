// SPDX-License-Identifier: BSD-3-Clause
// A handler that drops PyTorch's warnings.
#pragma once

#include <c10/util/Exception.h>

namespace openreg::ops {

// Set it with c10::WarningUtils::WarningHandlerGuard, for the calling thread.
class NullWarningHandler final : public c10::WarningHandler {
  void process(const c10::Warning& /*warning*/) override {}
};

}  // namespace openreg::ops
