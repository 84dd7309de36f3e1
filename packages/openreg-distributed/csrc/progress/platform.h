// SPDX-License-Identifier: BSD-3-Clause
// Functions of the operating system. One source file per system implements them.
#pragma once

namespace openreg::distributed::platform {

// Kills this process, so that no exit handler or destructor runs and no buffer is flushed. Uses SIGKILL on POSIX, and
// the exit status 9 on Windows.
[[noreturn]] void kill_this_process() noexcept;

// Returns true if other threads run while exit handlers run. On Windows the exit handlers of a library run after the
// system has ended all other threads.
bool threads_run_during_exit() noexcept;

}  // namespace openreg::distributed::platform
