// SPDX-License-Identifier: BSD-3-Clause
// The schedule when a seed selects it: work is held back until the host needs it, then runs one task at a time over all
// devices, in an order that follows from the program and the seed.
//
// REAL HW: no such thing; hardware interleaves as it likes, which is why races hide.
#include <algorithm>
#include <limits>

#include "execute.h"
#include "scheduler.h"
#include "scheduler_demand.h"

namespace openreg::driver {

namespace {

// Entries that may be held back before a launch lets some run, and how many then do: enough for long interleavings,
// little enough for memory that frees wait for.
constexpr size_t kBacklog = 256;
constexpr size_t kRelief = 128;

// Queries in a row, with nothing enqueued between them, after which a program is seen to poll: only then a query takes
// a signal. One that looks in passing, as a caching allocator does, would let the time of the signal decide.
constexpr size_t kPolls = 64;

// How long the rules that make the order repeat may keep the program from going on. Programs exist that they would stop
// for ever: one whose thread must go on before the signal can come that it is made to wait for.
constexpr uint64_t kPatience = 1'000'000'000;

// Half of what the virtual clock can show; the other half is for what follows a task of absurd length.
constexpr uint64_t kEndOfTime = std::numeric_limits<uint64_t>::max() / 2;

// The wait at the head of a stream.
const Task::SemaphoreWait& wait_of(Stream& stream) {
  return stream.queue.front().semaphore;
}

bool has_come(Stream& stream) {
  const Task::SemaphoreWait& wait = wait_of(stream);
  return wait.semaphore->signalled >= wait.value || !wait.semaphore->failure.empty();
}

bool comes_first(Stream& stream, Stream* other) {
  return other == nullptr || wait_of(stream).number < wait_of(*other).number;
}

}  // namespace

bool& on_progress_thread() {
  thread_local bool value = false;
  return value;
}

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
    if (take_signal()) {
      continue;
    }
    for (Demand* demand : demands_) {
      demand->give_up();
    }
    if (is_demanded()) {
      break;  // a ticket whose turn comes with the next launch or signal
    }
  }
  engine.has_work.store(false, std::memory_order_relaxed);
  return nullptr;
}

bool Scheduler::is_demanded() {
  bool demanded = false;
  bool met = false;
  const bool quiet = is_quiet();
  for (const Demand* demand : demands_) {
    if (demand->is_met()) {
      met = true;
    } else {
      demanded |= quiet || !demand->is_passive();
    }
  }
  if (met) {
    demand_met_.notify_all();
  }
  return demanded;
}

// Whether no thread that decides the order has wanted anything for so long that progress threads may decide.
bool Scheduler::is_quiet() const {
  return !demands_.empty() && now() - quiet_since_ >= kPatience;
}

// How long the engine may sleep until somebody's patience ends, in nanoseconds; 0 for as long as it likes.
uint64_t Scheduler::patience_left() const {
  if (demands_.empty()) {
    return 0;
  }
  const uint64_t time = now();
  uint64_t left = kPatience + 1;
  for (const Demand* demand : demands_) {
    const uint64_t waited = time - (demand->is_passive() ? quiet_since_ : obstructed_since_);
    if (!demand->is_met() && waited < kPatience) {
      left = std::min(left, kPatience - waited);
    }
  }
  return left > kPatience ? 0 : left;
}

// Nothing can run but for signals. What is signalled when depends on other threads and processes, so it counts only
// here, and in the order in which the waits were submitted: the first that stands in a demand's way is waited for, and
// sees the value that it needs, not what was signalled beyond it. False when there is nothing to take.
bool Scheduler::take_signal() {
  Stream* first = nullptr;    // in the way of those who decide
  Stream* present = nullptr;  // in anybody's way, and signalled
  for (const Demand* demand : demands_) {
    Stream* stream = demand->obstacle();
    if (stream == nullptr) {
      continue;
    }
    const bool come = has_come(*stream);
    if (!demand->is_passive() && (come || demand->can_wait()) && comes_first(*stream, first)) {
      first = stream;
    }
    if (come && comes_first(*stream, present)) {
      present = stream;
    }
  }
  Stream* chosen = first;
  if (first == nullptr) {
    chosen = is_quiet() ? present : nullptr;
  } else if (!has_come(*first)) {
    const uint64_t time = now();
    if (obstructed_by_ != wait_of(*first).number) {
      obstructed_by_ = wait_of(*first).number;
      obstructed_since_ = time;
    }
    chosen = time - obstructed_since_ >= kPatience ? present : nullptr;
  }
  if (chosen == nullptr) {
    return false;
  }
  const Task::SemaphoreWait wait = wait_of(*chosen);
  if (wait.semaphore->signalled >= wait.value) {
    reach(*wait.semaphore, std::max(wait.semaphore->reached, wait.value));
  } else {
    fail_wait(*chosen, *wait.semaphore);
  }
  settle();
  for (Demand* demand : demands_) {
    demand->count_task();
  }
  return true;
}

// How long a task that has run took, in virtual nanoseconds. The seed is asked in any case: who observes must not
// change the order.
uint64_t Scheduler::duration_of(const Stream& stream, const Task& task) {
  uint64_t nanoseconds = seeded_->task_duration();
  if (task.observation != 0) {
    orTaskInfo info = describe(stream, task, stream.completed + 1);
    observers_.duration(task.observation, info, nanoseconds);
  }
  return std::min(nanoseconds, kEndOfTime - std::min(kEndOfTime, seeded_->time()));
}

// Lets the virtual clock go on, and ends each delay at its own time. Counts as the end of a task.
void Scheduler::pass_virtual_time(uint64_t nanoseconds) {
  const uint64_t end = seeded_->time() + nanoseconds;
  while (!deadlines_.empty() && deadlines_.top().first <= end) {
    seeded_->set_time(deadlines_.top().first);
    unblocked_.push_back(deadlines_.top().second);
    deadlines_.pop();
    settle();
  }
  seeded_->set_time(end);
  for (Demand* demand : demands_) {
    demand->count_task();
  }
}

bool Scheduler::run_one_task(Stream* stream, uint64_t ticket, Lock& lock) {
  if (on_engine()) {
    return false;
  }
  start(lock);
  // Progress threads ask when it suits them: that must not let anything run, unless nobody else will.
  if (on_progress_thread() && now() - quiet_since_ < kPatience) {
    return false;
  }
  Demand demand(*this, 1, lock);
  if (++polls_ > kPolls) {
    demand.poll(stream, ticket);
  }
  demand_met_.wait(lock, [&] { return demand.is_met() || stopping_; });
  if (!demand.has_given_up()) {
    polls_ = 0;
  }
  return true;
}

// Whether the next call that enqueues has to relieve it.
bool Scheduler::has_backlog() const {
  return pending_ >= kBacklog && !on_engine() && !on_progress_thread();
}

// After each call that enqueues.
void Scheduler::note_submission(Lock& lock) {
  if (on_engine() || on_progress_thread()) {
    return;
  }
  polls_ = 0;
  quiet_since_ = now();
  if (pending_ > kBacklog) {
    const Demand demand(*this, kRelief, lock);
    demand_met_.wait(lock, [&] { return demand.is_met() || stopping_; });
  }
}

}  // namespace openreg::driver
