// SPDX-License-Identifier: BSD-3-Clause
// Unit tests of handles, of queues, and of the order of tasks that a seed selects.
#pragma once

#include <array>
#include <cstddef>
#include <set>
#include <vector>

#include "engine/ready_queue.h"
#include "schedule/seeded_schedule.h"
#include "unit_common.h"

namespace parts {

inline void ready_streams_run_by_priority_then_in_order() {
  std::array<Stream, 4> streams;
  streams[1].priority = kGreatestPriority;
  streams[3].priority = kGreatestPriority;
  ReadyQueue queue;
  for (Stream& stream : streams) {
    queue.push(stream);
  }
  CHECK(queue.pop() == &streams[1] && queue.pop() == &streams[3]);
  CHECK(queue.pop() == &streams[0] && queue.pop() == &streams[2] && queue.pop() == nullptr);
}

inline std::vector<Stream*> seeded_order_of(std::array<Stream, 8>& streams, uint64_t seed) {
  ReadyQueue queue;
  for (Stream& stream : streams) {
    queue.push(stream);
  }
  SeededOrder order(seed);
  std::vector<Stream*> result;
  while (Stream* stream = queue.pop(order)) {
    result.push_back(stream);
  }
  return result;
}

inline void a_seed_chooses_among_the_highest_priority() {
  std::array<Stream, 8> streams;
  for (size_t i = 0; i < 4; ++i) {
    streams[i].priority = kGreatestPriority;
  }
  std::set<std::vector<Stream*>> orders;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<Stream*> order = seeded_order_of(streams, seed);
    CHECK(std::set<Stream*>(order.begin(), order.end()).size() == streams.size());
    for (size_t i = 0; i < streams.size(); ++i) {
      CHECK((order[i]->priority == kGreatestPriority) == (i < 4));
    }
    CHECK(order == seeded_order_of(streams, seed));
    orders.insert(order);
  }
  CHECK(orders.size() > 10);
}

inline void delays_end_in_the_order_of_their_times() {
  std::array<Stream, 3> streams;
  TimerQueue timer_queue;
  timer_queue.add(30, streams[0]);
  timer_queue.add(10, streams[1]);
  timer_queue.add(20, streams[2]);
  CHECK(timer_queue.earliest() == 10 && &timer_queue.take() == &streams[1]);
  CHECK(&timer_queue.take() == &streams[2] && !timer_queue.is_empty());
  CHECK(&timer_queue.take() == &streams[0] && timer_queue.is_empty());
}

inline void a_destroyed_stream_is_used_again_when_it_is_empty() {
  Queues queues;
  Stream& stream = queues.stream(0, -100);
  CHECK(stream.priority == kGreatestPriority);
  const orStream_t handle = handle_of(stream);
  CHECK(&queues.objects.stream(handle) == &stream);
  queues.processor.enqueue(stream, kernel());
  queues.objects.destroy_stream(stream);
  CHECK(refuses(orErrorInvalidResourceHandle, [&] { queues.objects.stream(handle); }));
  CHECK(&queues.stream() != &stream);  // not reused yet, because it still holds a kernel
  CHECK(queues.run_next() == &stream && stream.completed == 1);
  CHECK(&queues.stream() == &stream && handle_of(stream) != handle && stream.first_ticket == 1);
}

inline void a_stream_waits_for_the_ticket_of_another() {
  Queues queues;
  Stream& first = queues.stream();
  Stream& second = queues.stream(1);
  queues.processor.enqueue(first, kernel());
  const uint64_t ticket = queues.processor.enqueue(first, kernel());
  queues.processor.enqueue(second, wait_for(first, ticket));
  queues.processor.enqueue(second, kernel());
  CHECK(queues.processor.pending() == 4);
  CHECK(queues.run_next() == &first && queues.run_next() == &first);
  CHECK(second.completed == 1);  // the wait is complete without an engine
  CHECK(queues.run_next() == &second && queues.run_next() == nullptr && queues.processor.pending() == 0);
}

// The chain is so long that a recursion would overflow the stack.
inline void a_long_chain_of_waits_is_no_recursion() {
  constexpr size_t kStreams = 200'000;
  Queues queues;
  Stream* before = &queues.stream();
  queues.processor.enqueue(*before, kernel());
  for (size_t i = 1; i < kStreams; ++i) {
    Stream& next = queues.stream();
    queues.processor.enqueue(next, wait_for(*before, 1));
    before = &next;
  }
  CHECK(before->completed == 0 && queues.processor.pending() == kStreams);
  CHECK(queues.run_next() != nullptr && before->completed == 1 && queues.processor.pending() == 0);
}

inline void only_demanded_work_runs_under_a_seed() {
  SeededOrder order(7);
  Queues queues(&order);
  SeededSchedule schedule(kTimeout, order, queues.engines[kCompute], queues.timer_queue, queues.semaphores,
                          queues.processor, queues.tracer);
  Stream& first = queues.stream();
  Stream& second = queues.stream();
  queues.processor.enqueue(first, kernel());
  queues.processor.enqueue(second, delay(5'000'000));
  queues.processor.enqueue(second, kernel());
  CHECK(schedule.next() == nullptr);
  {
    WaitRequest request(first, 1, false);
    const SeededSchedule::WaitRequestGuard registration(&schedule, request);
    CHECK(schedule.next() == &first && !request.is_met());
    const uint64_t begin = order.time();
    TaskResult result;
    schedule.advance_clock(first, kernel(), result);
    CHECK(result.begin == begin && result.end == order.time());
    CHECK(order.time() > begin);
    queues.processor.complete(first);
    CHECK(request.is_met() && schedule.next() == nullptr && second.completed == 0);
  }
  WaitRequest request(second, 2, false);
  const SeededSchedule::WaitRequestGuard registration(&schedule, request);
  const uint64_t begin = order.time();
  CHECK(schedule.next() == &second && second.completed == 1);  // the delay advanced the schedule's clock only
  CHECK(order.time() > begin);
}

}  // namespace parts
