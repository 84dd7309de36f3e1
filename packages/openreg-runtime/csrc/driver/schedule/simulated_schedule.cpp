// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: no counterpart, because the tasks of a device take real time.
#include "schedule/simulated_schedule.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "engine/execute.h"
#include "schedule/seeded_schedule.h"

namespace openreg::driver {

SimulatedSchedule::Choice SimulatedSchedule::choose() const {
  Choice best;
  engine_.ready().for_each([&](Stream& stream) {
    const uint64_t start = time_.start(stream, tracer_.engine(stream, stream.queue.front()));
    const auto key = [&](const Stream& other, uint64_t begin) {
      return std::make_tuple(begin, other.priority, time_.number(other));
    };
    if (best.stream == nullptr || key(stream, start) < key(*best.stream, best.start)) {
      best = {&stream, start};
    }
  });
  return best;
}

bool SimulatedSchedule::has_begun() const {
  const Choice best = choose();
  return best.stream != nullptr && best.start <= time_.host();
}

bool SimulatedSchedule::is_waited_for() const {
  return std::any_of(requests_.begin(), requests_.end(),
                     [](const WaitRequest* request) { return request->can_wait() && !request->is_met(); });
}

Stream* SimulatedSchedule::next() {
  while (has_pending_wait(true)) {
    const Choice best = choose();
    if (best.stream != nullptr && (is_waited_for() || best.start <= time_.host())) {
      engine_.ready().remove(*best.stream);
      return best.stream;
    }
    give_up_requests();
    if (has_pending_wait(true)) {
      break;  // a ticket that needs a further launch or signal
    }
  }
  return nullptr;
}

void SimulatedSchedule::advance_clock(const Stream& stream, const Task& task, TaskResult& result) {
  const int engine = tracer_.engine(stream, task);
  uint64_t nanoseconds = 0;
  if (!result.skipped) {
    tracer_.duration(stream, task, nanoseconds);
  }
  result.begin = time_.start(stream, engine);
  result.end = time_.occupy(stream, engine, nanoseconds);
  result.engine = engine;
  count_task();
}

void SimulatedSchedule::run_started_tasks(Lock& lock) {
  if (has_begun()) {
    WaitRequest request(std::numeric_limits<size_t>::max());
    const WaitRequestGuard registration(this, request);
    wait(request, lock);
  }
}

bool SimulatedSchedule::run_for_query(Stream* stream, uint64_t ticket, Lock& lock) {
  run_started_tasks(lock);
  if (stream == nullptr || is_progress_thread() || !time_.is_on()) {  // another thread may have ended simulated time
    return true;
  }
  const auto is_over = [&] { return stream->completed >= ticket && time_.end_of(*stream, ticket) <= time_.host(); };
  if (is_over()) {
    polls_ = 0;
  } else if (++polls_ > kPollThreshold) {
    if (const Choice best = choose(); stream->completed < ticket && best.stream != nullptr) {
      time_.wait_until(best.start);
      run_started_tasks(lock);
    }
    if (stream->completed >= ticket) {
      time_.wait_until(time_.end_of(*stream, ticket));
    }
  }
  return true;
}

bool SimulatedSchedule::has_backlog() const {
  return !is_engine_thread() && processor_.pending() >= kMaxBacklog;
}

void SimulatedSchedule::after_submit(Lock& lock) {
  if (is_engine_thread()) {
    return;
  }
  polls_ = 0;
  if (processor_.pending() > kMaxBacklog) {
    run_started_tasks(lock);
  }
}

}  // namespace openreg::driver
