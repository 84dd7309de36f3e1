// SPDX-License-Identifier: BSD-3-Clause
// The schedule when a seed selects it: work is held back until the host needs it, then runs one task at a time over all
// devices, in an order that follows from the program and the seed.
//
// REAL HW: no such thing; hardware interleaves as it likes, which is why races hide.
#include "execute.h"
#include "scheduler.h"
#include "scheduler_demand.h"

namespace openreg::driver {

namespace {

// Entries that may be held back before a launch lets some run, and how many then do: enough for long interleavings,
// little enough for memory that frees wait for.
constexpr size_t kBacklog = 256;
constexpr size_t kRelief = 128;

}  // namespace

uint64_t Scheduler::clock() const {
  return seeded_.has_value() ? seeded_->time() : now();
}

Stream* Scheduler::take_demanded(Engine& engine) {
  while (is_demanded()) {
    for (auto& level : engine.ready) {
      if (!level.empty()) {
        const auto chosen = level.begin() + static_cast<std::ptrdiff_t>(seeded_->choose(level.size()));
        Stream* stream = *chosen;
        level.erase(chosen);
        return stream;
      }
    }
    if (!deadlines_.empty()) {
      pass_virtual_time(deadlines_.top().first - seeded_->time());
      continue;
    }
    for (Demand* demand : demands_) {
      demand->give_up();
    }
    if (is_demanded()) {
      break;  // a ticket whose turn comes with the next launch
    }
  }
  engine.has_work.store(false, std::memory_order_relaxed);
  return nullptr;
}

bool Scheduler::is_demanded() {
  bool demanded = false;
  bool met = false;
  for (const Demand* demand : demands_) {
    (demand->is_met() ? met : demanded) = true;
  }
  if (met) {
    demand_met_.notify_all();
  }
  return demanded;
}

// Lets the virtual clock go on, and ends the delays that are over by then. Counts as the end of a task.
void Scheduler::pass_virtual_time(uint64_t nanoseconds) {
  seeded_->set_time(seeded_->time() + nanoseconds);
  while (!deadlines_.empty() && deadlines_.top().first <= seeded_->time()) {
    unblocked_.push_back(deadlines_.top().second);
    deadlines_.pop();
    settle();
  }
  for (Demand* demand : demands_) {
    demand->count_task();
  }
}

void Scheduler::let_one_task_run(Lock& lock) {
  if (seeded_.has_value() && !on_engine()) {
    const Demand demand(*this, 1, lock);
    start(lock);
    demand_met_.wait(lock, [&] { return demand.is_met() || stopping_; });
  }
}

void Scheduler::relieve_backlog(Lock& lock) {
  if (seeded_.has_value() && pending_ > kBacklog && !on_engine()) {
    const Demand demand(*this, kRelief, lock);
    demand_met_.wait(lock, [&] { return demand.is_met() || stopping_; });
  }
}

}  // namespace openreg::driver
