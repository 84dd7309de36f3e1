// SPDX-License-Identifier: BSD-3-Clause
// How often each operator ran on the CPU.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace pocket {

// The calls of each operator since the process began, or since the counts were reset.
std::map<std::string, int64_t> fallback_counts();
void reset_fallback_counts();

// From now on an operator without a kernel throws NotImplementedError, or runs on the CPU again, in all threads.
void refuse_fallbacks(bool refused);

}  // namespace pocket
