// SPDX-License-Identifier: BSD-3-Clause
// Replaces the exit status 0 of a program that has findings.
#pragma once

namespace openreg::sanitizer {

// The exit status of a program with findings, which ThreadSanitizer uses as well.
inline constexpr int kExitStatusWithFindings = 66;

// Registers the exit handler that replaces the status. Exit handlers run in reverse order of registration. So this one
// runs after those that are registered later, and ends the process before earlier ones run. Must be called at most
// once.
void register_exit_handler();
// Makes the process end with kExitStatusWithFindings where it would end with 0. Systems that do not pass the status to
// exit handlers replace every status. Thread-safe.
void fail_at_exit() noexcept;

}  // namespace openreg::sanitizer
