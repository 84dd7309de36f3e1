// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: no counterpart. A device executes the tasks of different streams in any order, so races are found by chance
// only.
#include "schedule/seeded_schedule.h"

#include <algorithm>
#include <limits>

#include "base/steady_time.h"
#include "engine/execute.h"
#include "time/simulated_time.h"

namespace openreg::driver {

namespace {

// The number of tasks that a launch executes if too many are deferred.
constexpr size_t kBacklogBatch = 128;

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

// Returns the semaphore wait at the head of a stream.
const Task::SemaphoreWait& wait_of(Stream& stream) {
  return stream.queue.front().semaphore;
}

// Returns true if the semaphore for which the head of a stream waits was signaled far enough, or has failed.
bool has_come(Stream& stream) {
  const Task::SemaphoreWait& wait = wait_of(stream);
  return wait.semaphore->signaled >= wait.value || !wait.semaphore->failure.empty();
}

// Returns true if the semaphore wait at the head of `stream` was enqueued before that of `other`, which may be null.
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
    if (apply_signal()) {
      continue;
    }
    give_up_requests();
    if (has_pending_wait(has_stalled())) {
      break;  // a ticket that needs a further launch or signal
    }
  }
  return nullptr;
}

// Returns true if the timeout had passed since `begin` at the last call of next(). `begin` may be later than that
// call.
bool SeededSchedule::had_expired(uint64_t begin) const {
  return looked_at_ >= begin + timeout_;
}

// Returns true if all threads other than progress threads have been inactive for the timeout. Requests of progress
// threads then execute tasks.
bool SeededSchedule::has_stalled() const {
  return !requests_.empty() && had_expired(active_at_);
}

// Returns a time above 0 if a timeout lies after the newest next(), even if it has passed since, because nothing else
// would wake the engine.
uint64_t SeededSchedule::longest_sleep() const {
  uint64_t wake_at = kNever;
  for (const WaitRequest* request : requests_) {
    const uint64_t begin = request->is_passive() ? active_at_ : blocked_since_;
    if (!request->is_met() && !had_expired(begin)) {
      wake_at = std::min(wake_at, begin + timeout_);
    }
  }
  const uint64_t time = now();
  return wake_at == kNever ? 0 : std::max(wake_at, time + 1) - time;
}

// Lets the signal or the failure of one semaphore take effect, because no task can be executed without. Returns false
// if there is none that may take effect now. The time of a signal depends on other threads and processes. Signals
// therefore take effect only here, and in the order in which the waits were enqueued. The wait sees the value that it
// needs, even if a greater one was signaled.
bool SeededSchedule::apply_signal() {
  Stream* first = nullptr;    // the stream with the oldest wait that blocks a request that is not passive
  Stream* present = nullptr;  // the stream with the oldest wait that blocks any request and whose signal has come
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
  if (wait.semaphore->signaled >= wait.value) {
    semaphores_.reach(*wait.semaphore, wait.value);  // above what it has reached, because the wait blocks
  } else {
    semaphores_.fail_wait(*chosen, *wait.semaphore);
  }
  processor_.settle();
  count_task();
  return true;
}

// Always draws a random duration, because a subscriber that supplies durations must not change the order of tasks.
void SeededSchedule::advance_clock(const Stream& stream, const Task& task, TaskResult& result) {
  result.begin = order_.time();
  uint64_t nanoseconds = order_.task_duration();
  tracer_.duration(stream, task, nanoseconds);
  pass_time(SimulatedTime::later(order_.time(), nanoseconds) - order_.time());
  result.end = order_.time();
}

// Advances the clock of the SeededOrder, and completes each delay at its time. Counts one task for all requests.
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
  // The time of a progress thread's query depends on other processes. Such a query therefore executes tasks only if no
  // other thread is active.
  if (is_progress_thread() && now() - active_at_ < timeout_) {
    return false;
  }
  WaitRequest request(1);
  const WaitRequestGuard registration(this, request);
  if (++polls_ > kPollThreshold) {  // fewer queries let no signal take effect, because their time may vary
    request.set_ticket(stream, ticket);
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
