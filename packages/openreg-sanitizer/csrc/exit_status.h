// SPDX-License-Identifier: BSD-3-Clause
// The exit status of a program with findings.
#pragma once

namespace openreg::sanitizer {

// The exit status, that of other sanitizers.
inline constexpr int kFailed = 66;

// Registers the exit handler that replaces the status. Handlers of C run in reverse order, so it runs after those that
// are registered later, and ends the process without those that were registered before. Call it once.
void register_exit_handler();
// Makes the process end with kFailed where it would end with 0. Systems that do not pass the status to exit handlers
// replace every status.
void fail_at_exit() noexcept;

}  // namespace openreg::sanitizer
