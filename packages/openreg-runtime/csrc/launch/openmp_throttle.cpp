// SPDX-License-Identifier: BSD-3-Clause
#include "launch/openmp_throttle.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <optional>

namespace openreg::runtime {

namespace {

// The share of the time in which a thread could run that it waits for a core, above which its OpenMP threads sleep. A
// program that trains on an otherwise idle machine of two cores is below 0.25, because its host thread takes part of
// them. Beside another program that is always busy, it is above 0.4.
constexpr double kBusyShare = 1.0 / 3;
// In nanoseconds. The share of a thread that could run for a shorter time says nothing.
constexpr uint64_t kLeastTime = 20'000'000;

}  // namespace

// While threads sleep, the share does not tell whether they could spin. So they spin again for kPatience intervals.
void OpenMpThrottle::check() {
  const Clock::time_point now = Clock::now();
  if (now < next_) {
    return;
  }
  next_ = now + kInterval;
  if (idle_team_ != nullptr) {
    idle_team_.reset();
    last_ = core_time_of_thread().value_or(CoreTime{});
    return;
  }
  const int threads = at::get_num_threads();
  const Cores cores = threads > 1 ? measure() : Cores::kUnknown;
  if (cores == Cores::kFree) {
    busy_ = 0;
    sleep_ = kShortestSleep;
  } else if (cores == Cores::kBusy && ++busy_ == kPatience) {
    busy_ = 0;
    idle_team_ = std::make_unique<IdleOpenMpTeam>(static_cast<unsigned>(threads), sleep_);
    next_ = now + sleep_;
    sleep_ = std::min(2 * sleep_, kLongestSleep);
  }
}

OpenMpThrottle::Cores OpenMpThrottle::measure() {
  const std::optional<CoreTime> time = core_time_of_thread();
  if (!time.has_value()) {
    return Cores::kUnknown;
  }
  const uint64_t waited = time->waited - last_.waited;
  const uint64_t runnable = time->ran - last_.ran + waited;
  if (runnable < kLeastTime) {
    return Cores::kUnknown;
  }
  last_ = *time;
  return static_cast<double>(waited) > kBusyShare * static_cast<double>(runnable) ? Cores::kBusy : Cores::kFree;
}

}  // namespace openreg::runtime
