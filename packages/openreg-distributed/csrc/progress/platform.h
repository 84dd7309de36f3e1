// SPDX-License-Identifier: BSD-3-Clause
// What the progress needs from the operating system. One source file per system implements it.
#pragma once

namespace openreg::distributed::platform {

// Ends this process at once, as when somebody kills it: neither exit handlers nor destructors run, no buffer is
// written. On POSIX by SIGKILL; on Windows with exit status 9.
[[noreturn]] void kill_this_process() noexcept;

// Whether other threads still run while exit handlers do. On Windows those of a library run after the system has ended
// all threads but one, wherever they were.
bool threads_run_during_exit() noexcept;

}  // namespace openreg::distributed::platform
