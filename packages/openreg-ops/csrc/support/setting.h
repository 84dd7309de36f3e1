// SPDX-License-Identifier: BSD-3-Clause
// Environment variables with a few accepted values.
#pragma once

#include <c10/util/ArrayRef.h>

#include <string>

namespace openreg::ops {

// Returns the value of an environment variable, or the first of `values`, its default, if the variable is not set.
// Throws c10::ValueError, with the variable, its value and the accepted ones, if the value is not one of `values`.
std::string choice(const char* variable, c10::ArrayRef<const char*> values);

}  // namespace openreg::ops
