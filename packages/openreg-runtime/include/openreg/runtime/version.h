// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// Counts incompatible changes of the headers in this folder. A package compiled against one number refuses to load with
// a runtime of another: see require_abi_version().
constexpr int kAbiVersion = 9;

// The number that the loaded runtime library was compiled with.
OPENREG_RUNTIME_API int abi_version();

// Throws c10::Error which names `package`, both numbers and the way out, unless `compiled` is the number of the loaded
// runtime. Every native package calls it with kAbiVersion before it registers anything.
OPENREG_RUNTIME_API void require_abi_version(const char* package, int compiled);

}  // namespace openreg::runtime
