// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: no such thing; a card has the time that it takes.
#include "schedule/modelled_schedule.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "engine/execute.h"
#include "schedule/seeded_schedule.h"

namespace openreg::driver {

ModelledSchedule::Choice ModelledSchedule::choose() const {
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

bool ModelledSchedule::has_begun() const {
  const Choice best = choose();
  return best.stream != nullptr && best.start <= time_.host();
}

bool ModelledSchedule::is_waited_for() const {
  return std::any_of(demands_.begin(), demands_.end(),
                     [](const Demand* demand) { return demand->can_wait() && !demand->is_met(); });
}

Stream* ModelledSchedule::next() {
  while (is_demanded(true)) {
    const Choice best = choose();
    if (best.stream != nullptr && (is_waited_for() || best.start <= time_.host())) {
      engine_.ready().remove(*best.stream);
      return best.stream;
    }
    for (Demand* demand : demands_) {
      demand->give_up();
    }
    if (is_demanded(true)) {
      break;  // a ticket whose turn comes with the next launch or signal
    }
  }
  return nullptr;
}

void ModelledSchedule::pass_duration(const Stream& stream, const Task& task, Outcome& outcome) {
  const int engine = tracer_.engine(stream, task);
  uint64_t nanoseconds = 0;
  if (!outcome.skipped) {
    tracer_.duration(stream, task, nanoseconds);
  }
  outcome.begin = time_.start(stream, engine);
  outcome.end = time_.occupy(stream, engine, nanoseconds);
  outcome.engine = engine;
  count_task();
}

void ModelledSchedule::run_what_has_begun(Lock& lock) {
  if (has_begun()) {
    Demand demand(std::numeric_limits<size_t>::max());
    const Registration registration(this, demand);
    wait(demand, lock);
  }
}

bool ModelledSchedule::let_run(Stream* stream, uint64_t ticket, Lock& lock) {
  run_what_has_begun(lock);
  if (stream == nullptr || on_progress_thread()) {
    return true;
  }
  const auto is_over = [&] { return stream->completed >= ticket && time_.end_of(*stream, ticket) <= time_.host(); };
  if (is_over()) {
    polls_ = 0;
  } else if (++polls_ > kPollThreshold) {
    if (const Choice best = choose(); stream->completed < ticket && best.stream != nullptr) {
      time_.wait_until(best.start);
      run_what_has_begun(lock);
    }
    if (stream->completed >= ticket) {
      time_.wait_until(time_.end_of(*stream, ticket));
    }
  }
  return true;
}

bool ModelledSchedule::has_backlog() const {
  return !on_engine() && processor_.pending() >= kMaxBacklog && has_begun();
}

void ModelledSchedule::note_submission(Lock& lock) {
  if (on_engine()) {
    return;
  }
  polls_ = 0;
  if (processor_.pending() > kMaxBacklog) {
    run_what_has_begun(lock);
  }
}

}  // namespace openreg::driver
