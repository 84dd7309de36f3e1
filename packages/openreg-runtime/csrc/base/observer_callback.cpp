// SPDX-License-Identifier: BSD-3-Clause
#include "base/observer_callback.h"

#include <c10/util/Exception.h>

namespace openreg::runtime {

void throw_inside_callback(const char* function) {
  TORCH_CHECK(
      false, function,
      " was called inside a callback of observe_memory(), which runs with the allocator locked; let the callback "
      "store what it gets, and make the call when it has returned");
}

}  // namespace openreg::runtime
