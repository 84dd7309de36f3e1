// SPDX-License-Identifier: BSD-3-Clause
// A dispatch key that PyTorch keeps for extensions, as long as no other library has taken it.
#pragma once

#include <c10/core/DispatchKey.h>

namespace openreg::ops {

// Lets all operators of a key pass, apart from those that get a kernel, and returns true. Where another library has
// registered something for the key it registers nothing and returns false. A library that registers for all operators
// of the key later gets PyTorch's error, which ends with `holder`. Call it once for each key, while the library loads.
bool take_key(c10::DispatchKey key, const char* holder);

}  // namespace openreg::ops
