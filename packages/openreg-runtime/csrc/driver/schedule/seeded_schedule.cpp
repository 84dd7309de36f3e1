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

bool& is_progress_thread() {
  thread_local bool value = false;
  return value;
}

void SeededSchedule::request_ended() {
  if (!is_progress_thread()) {
    active_at_ = now();
  }
}

Stream* SeededSchedule::next() {
  looked_at_ = now();
  while (has_pending_wait(has_stalled())) {
    if (Stream* stream = engine_.ready().pop(order_)) {
      return stream;
    }
    if (!timer_queue_.is_empty()) {
      pass_time(timer_queue_.earliest() - order_.time());
      continue;
    }
    if (take_signal()) {
      continue;
    }
    for (WaitRequest* request : requests_) {
      request->give_up();
    }
    if (has_pending_wait(has_stalled())) {
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
  return !requests_.empty() && had_expired(active_at_);
}

// A timeout that next() has not seen is slept for even if it has passed since, as nobody else would wake the engine.
uint64_t SeededSchedule::longest_sleep() const {
  uint64_t wake_at = kNever;
  for (const WaitRequest* request : requests_) {
    const uint64_t begin = request->is_passive() ? active_at_ : blocked_since_;
    if (!request->is_met() && !had_expired(begin)) {
      wake_at = std::min(wake_at, begin + kStallTimeout);
    }
  }
  const uint64_t time = now();
  return wake_at == kNever ? 0 : std::max(wake_at, time + 1) - time;
}

// Nothing can run but for signals. What is signalled when depends on other threads and processes, so it counts only
// here, and in the order in which the waits were submitted: the first that stands in a request's way is waited for, and
// sees the value that it needs, not what was signalled beyond it. False when there is nothing to take.
bool SeededSchedule::take_signal() {
  Stream* first = nullptr;    // in the way of those who decide
  Stream* present = nullptr;  // in anybody's way, and signalled
  for (const WaitRequest* request : requests_) {
    Stream* stream = request->blocking_stream();
    if (stream == nullptr) {
      continue;
    }
    const bool come = has_come(*stream);
    if (!request->is_passive() && (come || request->can_wait()) && comes_first(*stream, first)) {
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
void SeededSchedule::advance_clock(const Stream& stream, const Task& task, TaskResult& result) {
  result.begin = order_.time();
  uint64_t nanoseconds = order_.task_duration();
  tracer_.duration(stream, task, nanoseconds);
  pass_time(std::min(nanoseconds, kEndOfTime - std::min(kEndOfTime, order_.time())));
  result.end = order_.time();
}

// Lets the virtual clock go on, and ends each delay at its own time. Counts as the end of a task.
void SeededSchedule::pass_time(uint64_t nanoseconds) {
  const uint64_t end = order_.time() + nanoseconds;
  while (!timer_queue_.is_empty() && timer_queue_.earliest() <= end) {
    order_.set_time(timer_queue_.earliest());
    processor_.complete(timer_queue_.take());
  }
  order_.set_time(end);
  count_task();
}

bool SeededSchedule::run_for_query(Stream* stream, uint64_t ticket, Lock& lock) {
  // Progress threads ask when it suits them: that must not let anything run, unless nobody else will.
  if (is_progress_thread() && now() - active_at_ < kStallTimeout) {
    return false;
  }
  WaitRequest request(1);
  const WaitRequestGuard registration(this, request);
  if (++polls_ > kPollThreshold) {  // only then a query takes a signal, whose time would decide
    request.poll(stream, ticket);
  }
  wait(request, lock);
  if (!request.has_given_up()) {
    polls_ = 0;
  }
  return true;
}

bool SeededSchedule::has_backlog() const {
  return processor_.pending() >= kMaxBacklog && !is_engine_thread() && !is_progress_thread();
}

void SeededSchedule::after_submit(Lock& lock) {
  if (is_engine_thread() || is_progress_thread()) {
    return;
  }
  polls_ = 0;
  active_at_ = now();
  if (processor_.pending() > kMaxBacklog) {
    WaitRequest request(kBacklogBatch);
    const WaitRequestGuard registration(this, request);
    wait(request, lock);
  }
}

}  // namespace openreg::driver
