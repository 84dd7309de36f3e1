// SPDX-License-Identifier: BSD-3-Clause
// Unit tests of simulated time, and of the tasks that the simulated schedule selects.
#pragma once

#include "schedule/simulated_schedule.h"
#include "time/simulated_time.h"
#include "unit_common.h"

namespace parts {

// Enqueues a task in simulated time, as CommandProcessor::enqueue() does.
inline void enqueue(SimulatedTime& time, Stream& stream, uint64_t nanoseconds) {
  ++stream.submitted;
  time.enqueue(stream, nanoseconds);
}

inline void an_entry_begins_when_all_that_it_needs_is_there() {
  Queues queues;
  Stream& first = queues.stream();
  Stream& second = queues.stream();
  SimulatedTime time;
  CHECK(!time.is_on());
  time.begin(1000);
  CHECK(time.is_on() && time.host() == 1000 && time.end_of(first, 7) == 0);
  enqueue(time, first, 10);
  enqueue(time, first, 0);
  enqueue(time, second, 5);
  CHECK(time.host() == 1015 && time.earliest(first) == 1010 && time.earliest(second) == 1015);
  CHECK(time.number(first) < time.number(second));
  CHECK(time.occupy(first, 0, 100) == 1110 && time.ran_until(first) == 1110);
  CHECK(time.start(second, 0) == 1110 && time.start(second, 1) == 1015);
  CHECK(time.start(second, SimulatedTime::kNoEngine) == 1015);
  time.complete(first, 1110);
  CHECK(time.earliest(first) == 1110 && time.end_of(first, first.submitted - 1) == 1110);
  time.wait_until(1050);
  time.wait_until(1020);
  CHECK(time.host() == 1050);
}

inline void no_answer_makes_a_clock_go_back() {
  Queues queues;
  Stream& stream = queues.stream();
  SimulatedTime time;
  time.begin(1000);
  for (int i = 0; i < 3; ++i) {
    enqueue(time, stream, UINT64_MAX);
    const uint64_t begin = time.earliest(stream);
    const uint64_t end = time.occupy(stream, 0, UINT64_MAX);
    CHECK(end >= begin && begin >= 1000 && time.host() >= begin);
    time.complete(stream, end);
  }
}

inline void tickets_of_a_stream_that_was_used_before_are_distinguished() {
  Queues queues;
  Stream& stream = queues.stream();
  stream.submitted = 40;
  SimulatedTime time;
  time.begin(5);
  enqueue(time, stream, 1);
  time.complete(stream, 9);
  CHECK(time.end_of(stream, 40) == 0 && time.end_of(stream, 41) == 9);
  time.begin(100);  // for another time source; tasks from before have no time
  CHECK(time.end_of(stream, 41) == 0);
}

inline void what_has_begun_by_the_hosts_clock_runs_without_a_wait() {
  Queues queues;
  queues.engines.set_one_at_a_time(true);
  SimulatedSchedule schedule(queues.engines[kCompute], queues.simulated, queues.processor, queues.tracer);
  Stream& stream = queues.stream();
  queues.simulated.begin(1000);
  queues.processor.enqueue(stream, kernel());
  CHECK(schedule.next() == nullptr);  // no thread waits
  WaitRequest request(5);
  const DeferredSchedule::WaitRequestGuard registration(&schedule, request);
  CHECK(schedule.next() == &stream && !request.is_met());
  TaskResult result;
  schedule.advance_clock(stream, kernel(), result);
  CHECK(result.begin == 1000 && result.end == 1000 && result.engine == SimulatedTime::kNoEngine);
  queues.processor.complete(stream);
  CHECK(schedule.next() == nullptr && request.is_met());  // no task is left, so the request gives up
}

}  // namespace parts
