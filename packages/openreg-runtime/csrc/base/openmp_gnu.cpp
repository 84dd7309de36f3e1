// SPDX-License-Identifier: BSD-3-Clause
// Controls threads of GNU OpenMP, which PyTorch for Linux contains. It counts all its threads in the process, and lets
// those that wait spin only as long as there are no more of them than cores.
#include <algorithm>
#include <fstream>
#include <system_error>
#include <thread>
#include <vector>

#include "base/openmp.h"
#include "openreg/runtime/host_wait.h"

// Functions of OpenMP 5.0, sections 3.2.5 and 3.2.44, and what compilers call for a parallel region. The symbols are
// weak, so that they resolve to the OpenMP library that PyTorch has loaded, whatever its file name, and are null if
// that library is older. A library that is linked here could be a second copy, which would control only its own
// threads.
extern "C" int omp_get_num_procs() __attribute__((weak));
extern "C" int omp_pause_resource_all(int kind) __attribute__((weak));
extern "C" void GOMP_parallel(void (*function)(void*), void* argument, unsigned threads, unsigned flags)
    __attribute__((weak));

namespace openreg::runtime {

namespace {

// Throws std::system_error unless the system starts `count` threads, because GNU OpenMP ends the process if it cannot
// start the threads of a team.
void check_can_start(unsigned count) {
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < count; ++i) {
    threads.emplace_back([] {});
  }
}

}  // namespace

void release_openmp_threads() noexcept {
  constexpr int kSoft = 1;  // omp_pause_soft, which keeps settings
  if (omp_pause_resource_all != nullptr) {
    omp_pause_resource_all(kSoft);
  }
}

std::optional<CoreTime> core_time_of_thread() {
  CoreTime time;
  std::ifstream file("/proc/thread-self/schedstat");
  return file >> time.ran >> time.waited ? std::make_optional(time) : std::nullopt;
}

IdleOpenMpTeam::IdleOpenMpTeam(unsigned kernel_threads, std::chrono::milliseconds duration) {
  if (GOMP_parallel == nullptr || omp_get_num_procs == nullptr) {
    return;
  }
  // GNU OpenMP counts one thread of the process, and those of each team but the thread that has started it.
  const unsigned cores = static_cast<unsigned>(omp_get_num_procs());
  const unsigned threads = std::max(cores, kernel_threads) - kernel_threads + 2;
  try {
    check_can_start(threads);
    owner_ = std::thread([this, threads, duration] {
      std::ofstream("/proc/thread-self/comm") << "openreg_idle";  // the thread's name, which its team inherits
      GOMP_parallel([](void*) {}, nullptr, threads, 0);
      std::unique_lock<std::mutex> lock(mutex_);
      ended_.wait_for(lock, duration, [this] { return ends_; });
    });
  } catch (const std::system_error&) {
    // The system has reached its limit of threads, so that the threads of kernels go on spinning.
  }
}

IdleOpenMpTeam::~IdleOpenMpTeam() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  ended_.notify_one();
  if (owner_.joinable()) {
    owner_.join();
  }
}

}  // namespace openreg::runtime
