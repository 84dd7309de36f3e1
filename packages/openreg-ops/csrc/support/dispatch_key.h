// SPDX-License-Identifier: BSD-3-Clause
// Registration of a fallthrough for a dispatch key that PyTorch reserves for extensions, unless another library uses
// it. mechanisms/fallthrough.cpp implements it.
#pragma once

#include <c10/core/DispatchKey.h>

namespace openreg::ops {

// Registers a fallthrough for all operators of `key`, except those that get a kernel, and returns true. If another
// library has registered anything for the key, registers nothing and returns false. Call it once per key, while the
// library loads.
//
// `holder` is text for users. A library that registers a fallback for the key later gets PyTorch's error about two
// fallbacks, which contains `holder` as the place of the first one. PyTorch stores the pointer, so pass a literal.
bool take_key(c10::DispatchKey key, const char* holder);

}  // namespace openreg::ops
