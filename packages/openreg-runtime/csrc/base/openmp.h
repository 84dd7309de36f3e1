// SPDX-License-Identifier: BSD-3-Clause
// Controls OpenMP threads that wait, by means of Linux and of GNU OpenMP, which PyTorch for Linux contains. On other
// systems nothing is measured, and an idle team has no threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

namespace openreg::runtime {

// How long a thread ran, and how long it waited for a core although it could run, in nanoseconds since it started.
struct CoreTime {
  uint64_t ran = 0;
  uint64_t waited = 0;
};

// Returns the times of the calling thread, or nullopt if the system does not count them. Source:
// /proc/thread-self/schedstat, proc(5).
std::optional<CoreTime> core_time_of_thread();

// A team of OpenMP threads that do nothing. As long as they exist, the process has more OpenMP threads than there are
// cores, so that those that wait sleep after 100 instead of 300 000 turns of a loop (GNU OpenMP's throttled spin
// count).
class IdleOpenMpTeam {
 public:
  // Starts as many threads as are missing, if a kernel has `kernel_threads`. They end after `duration`, also if this
  // object still exists. Does nothing if the system starts no thread.
  IdleOpenMpTeam(unsigned kernel_threads, std::chrono::milliseconds duration);
  // Ends them at once, and blocks until they have ended.
  ~IdleOpenMpTeam();
  IdleOpenMpTeam(const IdleOpenMpTeam&) = delete;
  IdleOpenMpTeam& operator=(const IdleOpenMpTeam&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  std::thread owner_;  // a team belongs to the thread that has started it
};

}  // namespace openreg::runtime
