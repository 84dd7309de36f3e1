// SPDX-License-Identifier: BSD-3-Clause
// The exit status of a program with findings.
#pragma once

namespace openreg::sanitizer {

// The exit status, that of other sanitizers.
inline constexpr int kFailed = 66;

// Makes the process end with kFailed where it would end with 0, after all exit handlers that are registered by now.
// Systems that do not tell exit handlers the status replace every status.
void fail_at_exit();

}  // namespace openreg::sanitizer
