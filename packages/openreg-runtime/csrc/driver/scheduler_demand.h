// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include "scheduler.h"

namespace openreg::driver {

// With a seed work is held back until somebody needs it: while a host thread waits for a ticket, or lets a number of
// tasks run, one of these stands in the scheduler's list. The engine looks at the list between two tasks, so it stops
// exactly where the demand ends, and what has run does not depend on how fast the threads are. Without a seed it does
// nothing. Lives on the stack of the waiting thread, under the scheduler's lock.
class Scheduler::Demand {
 public:
  Demand(Scheduler& scheduler, const Stream* stream, uint64_t ticket, const Lock& /*lock*/)
      : scheduler_(scheduler), stream_(stream), ticket_(ticket) {
    enter();
  }
  Demand(Scheduler& scheduler, size_t tasks, const Lock& /*lock*/) : scheduler_(scheduler), tasks_(tasks) { enter(); }
  Demand(const Demand&) = delete;
  Demand& operator=(const Demand&) = delete;
  ~Demand() {
    auto& demands = scheduler_.demands_;
    demands.erase(std::remove(demands.begin(), demands.end(), this), demands.end());
  }

  bool is_met() const { return stream_ != nullptr ? stream_->completed >= ticket_ : tasks_ == 0; }
  void count_task() {
    if (tasks_ > 0) {
      --tasks_;
    }
  }
  // There is nothing left that could run.
  void give_up() { tasks_ = 0; }

 private:
  void enter() {
    if (scheduler_.seeded_.has_value()) {
      scheduler_.demands_.push_back(this);
      scheduler_.wake(scheduler_.engines_[kCompute]);
    }
  }

  Scheduler& scheduler_;
  const Stream* stream_ = nullptr;
  uint64_t ticket_ = 0;
  size_t tasks_ = 0;
};

}  // namespace openreg::driver
