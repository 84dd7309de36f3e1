// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: no such thing; hardware interleaves as it likes, which is why races hide.
#include "schedule/seeded_schedule.h"

#include <algorithm>
#include <limits>

#include "base/steady_time.h"
#include "engine/execute.h"

namespace openreg::driver {

namespace {

// How many entries a launch lets run when too many are held back.
constexpr size_t kBacklogBatch = 128;

// How long the rules that make the order repeat may keep the program from going on. Programs exist that they would stop
// for ever: one whose thread must go on before the signal can come that it is made to wait for.
constexpr uint64_t kStallTimeout = 1'000'000'000;

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

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

void SeededSchedule::demand_ended() {
  if (!on_progress_thread()) {
    active_at_ = now();
  }
}

Stream* SeededSchedule::next() {
  looked_at_ = now();
  while (is_demanded(has_stalled())) {
    if (Stream* stream = engine_.ready().pop(order_)) {
      return stream;
    }
    if (!deadlines_.is_empty()) {
      pass_time(deadlines_.earliest() - order_.time());
      continue;
    }
    if (take_signal()) {
      continue;
    }
    for (Demand* demand : demands_) {
      demand->give_up();
    }
    if (is_demanded(has_stalled())) {
      break;  // a ticket whose turn comes with the next launch or signal
    }
  }
  return nullptr;
}

// Tells whether kStallTimeout had passed since `begin` when next() looked last; `begin` may be a later time than that.
bool SeededSchedule::had_expired(uint64_t begin) const {
  return looked_at_ >= begin + kStallTimeout;
}

// Tells whether no thread that decides the order has wanted anything for so long that progress threads may decide.
bool SeededSchedule::has_stalled() const {
  return !demands_.empty() && had_expired(active_at_);
}

// A timeout that next() has not seen is slept for even if it has passed since, as nobody else would wake the engine.
uint64_t SeededSchedule::longest_sleep() const {
  uint64_t wake_at = kNever;
  for (const Demand* demand : demands_) {
    const uint64_t begin = demand->is_passive() ? active_at_ : blocked_since_;
    if (!demand->is_met() && !had_expired(begin)) {
      wake_at = std::min(wake_at, begin + kStallTimeout);
    }
  }
  const uint64_t time = now();
  return wake_at == kNever ? 0 : std::max(wake_at, time + 1) - time;
}

// Nothing can run but for signals. What is signalled when depends on other threads and processes, so it counts only
// here, and in the order in which the waits were submitted: the first that stands in a demand's way is waited for, and
// sees the value that it needs, not what was signalled beyond it. False when there is nothing to take.
bool SeededSchedule::take_signal() {
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
    chosen = has_stalled() ? present : nullptr;
  } else if (!has_come(*first)) {
    if (blocked_by_ != wait_of(*first).number) {
      blocked_by_ = wait_of(*first).number;
      blocked_since_ = looked_at_;
    }
    chosen = had_expired(blocked_since_) ? present : nullptr;
  }
  if (chosen == nullptr) {
    return false;
  }
  const Task::SemaphoreWait wait = wait_of(*chosen);
  if (wait.semaphore->signalled >= wait.value) {
    semaphores_.reach(*wait.semaphore, std::max(wait.semaphore->reached, wait.value));
  } else {
    semaphores_.fail_wait(*chosen, *wait.semaphore);
  }
  processor_.settle();
  count_task();
  return true;
}

// The seed is asked in any case: who observes must not change the order.
void SeededSchedule::pass_duration(const Stream& stream, const Task& task, Outcome& outcome) {
  outcome.begin = order_.time();
  uint64_t nanoseconds = order_.task_duration();
  tracer_.duration(stream, task, nanoseconds);
  pass_time(std::min(nanoseconds, kEndOfTime - std::min(kEndOfTime, order_.time())));
  outcome.end = order_.time();
}

// Lets the virtual clock go on, and ends each delay at its own time. Counts as the end of a task.
void SeededSchedule::pass_time(uint64_t nanoseconds) {
  const uint64_t end = order_.time() + nanoseconds;
  while (!deadlines_.is_empty() && deadlines_.earliest() <= end) {
    order_.set_time(deadlines_.earliest());
    processor_.complete(deadlines_.take());
  }
  order_.set_time(end);
  count_task();
}

bool SeededSchedule::let_run(Stream* stream, uint64_t ticket, Lock& lock) {
  // Progress threads ask when it suits them: that must not let anything run, unless nobody else will.
  if (on_progress_thread() && now() - active_at_ < kStallTimeout) {
    return false;
  }
  Demand demand(1);
  const Registration registration(this, demand);
  if (++polls_ > kPollThreshold) {  // only then a query takes a signal, whose time would decide
    demand.poll(stream, ticket);
  }
  wait(demand, lock);
  if (!demand.has_given_up()) {
    polls_ = 0;
  }
  return true;
}

bool SeededSchedule::has_backlog() const {
  return processor_.pending() >= kMaxBacklog && !on_engine() && !on_progress_thread();
}

void SeededSchedule::note_submission(Lock& lock) {
  if (on_engine() || on_progress_thread()) {
    return;
  }
  polls_ = 0;
  active_at_ = now();
  if (processor_.pending() > kMaxBacklog) {
    Demand demand(kBacklogBatch);
    const Registration registration(this, demand);
    wait(demand, lock);
  }
}

}  // namespace openreg::driver
