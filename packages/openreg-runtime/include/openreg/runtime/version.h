// SPDX-License-Identifier: BSD-3-Clause
// The ABI version of these headers and of the loaded library.
#pragma once

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// The ABI version of the headers in this folder, which each incompatible change increases by one. A package that was
// compiled with one version does not load with a runtime of another version; see require_abi_version().
constexpr int kAbiVersion = 15;

// Returns the kAbiVersion with which the loaded runtime library was compiled. Thread-safe.
OPENREG_RUNTIME_API int abi_version();

// Throws c10::Error, with `package`, both versions and the remedy, unless `compiled` is the version of the loaded
// runtime. Every native package calls this with kAbiVersion before it registers anything. Thread-safe.
OPENREG_RUNTIME_API void require_abi_version(const char* package, int compiled);

}  // namespace openreg::runtime
