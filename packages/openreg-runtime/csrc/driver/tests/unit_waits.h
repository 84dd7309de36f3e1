// SPDX-License-Identifier: BSD-3-Clause
// Unit tests of semaphores, of the requests of waiting threads, and of the callbacks of observers.
#pragma once

#include <string>
#include <vector>

#include "schedule/seeded_schedule.h"
#include "schedule/wait_request.h"
#include "unit_common.h"

namespace parts {

inline void a_signal_ends_the_waits_that_it_reaches() {
  Queues queues;
  TimelineSemaphore& semaphore = queues.semaphores.create(1);
  Stream& near = queues.stream();
  Stream& far = queues.stream();
  queues.processor.enqueue(near, queues.semaphores.make_wait(semaphore, 2));
  queues.processor.enqueue(far, queues.semaphores.make_wait(semaphore, 3));
  CHECK(refuses(orErrorIllegalState, [&] { queues.semaphores.destroy(semaphore); }));
  CHECK(refuses(orErrorInvalidValue, [&] { queues.semaphores.signal(semaphore, 0); }));
  queues.semaphores.signal(semaphore, 2);
  CHECK(queues.completions == Completions{&near});
  queues.processor.settle();
  CHECK(near.completed == 1 && far.completed == 0 && semaphore.waits == 1);
  queues.semaphores.signal(semaphore, 9);
  queues.processor.settle();
  CHECK(far.completed == 1);
  const orSemaphore_t handle = handle_of(semaphore);
  queues.semaphores.destroy(semaphore);
  CHECK(refuses(orErrorInvalidResourceHandle, [&] { queues.semaphores.find(handle); }));
}

inline void a_failed_semaphore_fails_who_waits() {
  Queues queues;
  TimelineSemaphore& semaphore = queues.semaphores.create(0);
  TimelineSemaphore& other = queues.semaphores.create(0);
  Stream& first = queues.stream(0);
  Stream& beside = queues.stream(0);
  Stream& elsewhere = queues.stream(1);
  queues.processor.enqueue(first, queues.semaphores.make_wait(semaphore, 1));
  queues.processor.enqueue(beside, queues.semaphores.make_wait(other, 1));
  queues.processor.enqueue(elsewhere, queues.semaphores.make_wait(other, 1));
  const auto mark = [&](Stream& stream, uint64_t ticket) -> Event& {
    Event& event = queues.objects.create_event(false);
    event.stream = &stream;
    event.device = stream.device;
    event.ticket = ticket;
    return event;
  };
  const Event& before = mark(first, 0);
  const Event& behind = mark(first, 1);
  const Event& on_another_device = mark(elsewhere, 1);
  queues.semaphores.fail(semaphore, "the link is down");
  queues.processor.settle();
  CHECK(refuses(orErrorLaunchFailure, [&] { queues.devices[0]->check_healthy(); }));
  CHECK(queues.devices[0]->failure.find("the link is down") != std::string::npos);
  CHECK(first.completed == 1 && beside.completed == 1);  // all waits of the failed device have ended
  CHECK(elsewhere.completed == 0 && !queues.devices[1]->failed);
  CHECK(behind.skipped && !before.skipped && !on_another_device.skipped);
  CHECK(refuses(orErrorIllegalState, [&] { queues.semaphores.signal(semaphore, 1); }));
}

inline void under_a_seed_a_signal_waits_for_its_turn() {
  SeededOrder order(1);
  Queues queues(&order);
  SeededSchedule schedule(kTimeout, order, queues.engines[kCompute], queues.timer_queue, queues.semaphores,
                          queues.processor, queues.tracer);
  TimelineSemaphore& semaphore = queues.semaphores.create(0);
  Stream& waiting = queues.stream();
  Stream& working = queues.stream();
  queues.processor.enqueue(waiting, queues.semaphores.make_wait(semaphore, 4));
  queues.processor.enqueue(working, kernel());
  queues.semaphores.signal(semaphore, 6);
  CHECK(queues.completions.empty() && semaphore.signaled == 6 && semaphore.reached == 0);
  WaitRequest request(waiting, 1, false);
  CHECK(request.blocking_stream() == &waiting);
  const SeededSchedule::WaitRequestGuard registration(&schedule, request);
  CHECK(schedule.next() == &working && waiting.completed == 0);  // a signal takes effect only if no task can run
  queues.processor.complete(working);
  CHECK(schedule.next() == nullptr && waiting.completed == 1 && semaphore.reached == 4);
}

inline void a_demand_finds_the_wait_in_its_way() {
  Queues queues;
  TimelineSemaphore& semaphore = queues.semaphores.create(0);
  Stream& first = queues.stream();
  Stream& second = queues.stream();
  queues.processor.enqueue(first, queues.semaphores.make_wait(semaphore, 1));
  queues.processor.enqueue(second, wait_for(first, 1));
  queues.processor.enqueue(second, kernel());
  const WaitRequest request(second, 2, false);
  CHECK(request.blocking_stream() == &first && request.can_wait() && !request.is_met());
  queues.semaphores.signal(semaphore, 1);
  queues.processor.settle();
  CHECK(request.blocking_stream() == nullptr);  // now a kernel blocks the ticket
  CHECK(queues.run_next() == &second && request.is_met());
  WaitRequest tasks(2);
  tasks.count_task();
  CHECK(!tasks.is_met() && !tasks.can_wait());
  tasks.give_up();
  CHECK(tasks.is_met() && tasks.has_given_up());
}

struct Notes {
  std::vector<orTaskInfo> submits;
  std::vector<orTaskCompletion> completes;
  std::vector<orSyncInfo> syncs;
};

inline void each_task_is_reported_to_observers_once() {
  Queues queues;
  Notes notes;
  orSubscriber table{};
  table.version = OPENREG_SUBSCRIBER_VERSION;
  table.size = sizeof(table);
  table.submit = [](void* user, const orTaskInfo* task, uint64_t*) {
    static_cast<Notes*>(user)->submits.push_back(*task);
  };
  table.complete = [](void* user, const orTaskCompletion* task) {
    static_cast<Notes*>(user)->completes.push_back(*task);
  };
  table.sync = [](void* user, const orSyncInfo* sync) { static_cast<Notes*>(user)->syncs.push_back(*sync); };
  Stream& stream = queues.stream(1);
  queues.processor.enqueue(stream, kernel());  // before the subscription, so not reported
  Subscription& subscription = queues.observers.subscribe(table, &notes);
  const uint64_t ticket = queues.processor.enqueue(stream, kernel());
  CHECK(notes.submits.size() == 1 && notes.submits[0].ticket == ticket && notes.submits[0].device == 1);
  CHECK(stream.observed == ticket);
  queues.run_next();
  CHECK(notes.completes.empty());
  queues.run_next();
  CHECK(notes.completes.size() == 1 && notes.completes[0].ticket == ticket &&
        notes.completes[0].stream == handle_of(stream));
  CHECK(notes.completes[0].begin <= notes.completes[0].end);
  queues.tracer.sync(orSyncStream, *stream.device, &stream, ticket);
  CHECK(notes.syncs.size() == 1 && notes.syncs[0].ticket == ticket);
  queues.observers.close(subscription);
  queues.observers.recycle(subscription);
  queues.processor.enqueue(stream, kernel());
  CHECK(notes.submits.size() == 1);
}

inline void a_duration_that_is_not_returned_changes_nothing() {
  Queues queues;
  orSubscriber table{};
  table.version = OPENREG_SUBSCRIBER_VERSION;
  table.size = sizeof(table);
  table.duration = [](void*, const orTaskInfo*, uint64_t* nanoseconds) {
    *nanoseconds = 5;
    return 0;
  };
  queues.observers.subscribe(table, nullptr);
  table.duration = [](void*, const orTaskInfo*, uint64_t* nanoseconds) -> int {
    *nanoseconds = 6;
    throw 7;
  };
  queues.observers.subscribe(table, nullptr);
  Stream& stream = queues.stream();
  queues.processor.enqueue(stream, kernel());
  uint64_t nanoseconds = 1;
  CHECK(!queues.tracer.duration(stream, stream.queue.front(), nanoseconds) && nanoseconds == 1);
}

}  // namespace parts
