// SPDX-License-Identifier: BSD-3-Clause
// Unit tests of the scheduler as a whole, with the threads of its engines: what other threads may do while a call
// blocks.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/driver.h"
#include "base/settings.h"
#include "openreg.h"
#include "schedule/scheduler.h"
#include "unit_common.h"

namespace parts {

// A scheduler with one device, whose default stream is `stream`.
struct Scheduling {
  ~Scheduling() { scheduler.stop(); }

  // Returns a kernel that runs until `opened` is true.
  Task gate() {
    Task task = kernel();
    task.kernel.state = this;
    task.kernel.function = [](void* state, char*, size_t) {
      auto& own = *static_cast<Scheduling*>(state);
      own.started = true;
      while (!own.opened) {
        std::this_thread::yield();
      }
      return orSuccess;
    };
    return task;
  }
  // Returns when a host thread sleeps until a task of the stream is complete.
  void await_sleeper() {
    while (true) {
      const Lock lock = scheduler.lock();
      if (stream.wake_at != kNoWaiter) {
        return;
      }
    }
  }
  void await_start() const {
    while (!started) {
      std::this_thread::yield();
    }
  }

  AddressSpace space{1, kCapacity};
  std::vector<std::unique_ptr<Device>> devices = make_devices(space, 1);
  Faults faults;
  std::atomic<bool> started{false};
  std::atomic<bool> opened{false};
  Scheduler scheduler{space, devices, faults, Settings{}};
  Stream& stream = *devices[0]->default_stream;
};

// Calls `change` while another thread waits for room in the full stream. Returns true if that thread's task is refused
// because of a capture.
template <class Change>
bool refuses_to_enqueue_after(Scheduling& scheduling, Change&& change) {
  Scheduler& scheduler = scheduling.scheduler;
  Stream& stream = scheduling.stream;
  bool refused = false;
  std::thread host([&] {
    Lock lock = scheduler.lock();
    refused = refuses(orErrorStreamCaptureUnsupported, [&] { scheduler.submit(stream, kernel(), lock); });
  });
  scheduling.await_sleeper();
  change();
  scheduling.opened = true;
  host.join();
  return refused;
}

inline void fill(Scheduling& scheduling) {
  Lock lock = scheduling.scheduler.lock();
  scheduling.scheduler.submit(scheduling.stream, scheduling.gate(), lock);
  while (scheduling.stream.queue.size() < kStreamCapacity) {
    scheduling.scheduler.submit(scheduling.stream, delay(0), lock);
  }
}

inline void a_capture_that_begins_while_a_call_waits_for_room_does_not_record_it() {
  Scheduling scheduling;
  Scheduler& scheduler = scheduling.scheduler;
  fill(scheduling);
  CHECK(refuses_to_enqueue_after(scheduling, [&] {
    const Lock lock = scheduler.lock();
    scheduler.begin_capture(scheduling.stream, orStreamCaptureModeRelaxed, lock);
  }));
  std::string invalidated_by;
  std::shared_ptr<GraphBody> body;  // outlives the lock, because its destructor takes the mutex
  const Lock lock = scheduler.lock();
  scheduler.end_capture(scheduling.stream, body, invalidated_by, lock);
  CHECK(invalidated_by.empty() && body->nodes.empty());
}

inline void a_call_that_waits_for_room_in_order_to_be_recorded_does_not_run_after_the_capture() {
  Scheduling scheduling;
  Scheduler& scheduler = scheduling.scheduler;
  Stream& stream = scheduling.stream;
  fill(scheduling);
  {
    const Lock lock = scheduler.lock();
    scheduler.begin_capture(stream, orStreamCaptureModeRelaxed, lock);
  }
  CHECK(refuses_to_enqueue_after(scheduling, [&] {
    std::string invalidated_by;
    std::shared_ptr<GraphBody> body;
    const Lock lock = scheduler.lock();
    scheduler.end_capture(stream, body, invalidated_by, lock);
  }));
  const Lock lock = scheduler.lock();
  CHECK(stream.submitted == kStreamCapacity);
}

// The stopped scheduler stands for a system that has no thread or memory left: the event is marked before its task is
// enqueued.
inline void an_event_whose_record_fails_is_as_before() {
  orEvent_t event = nullptr;
  CHECK(orEventCreateWithFlags(&event, orEventEnableTiming) == orSuccess);
  Driver::get().scheduler.stop();
  CHECK(orEventRecord(event, nullptr) == orErrorDeinitialized);
  CHECK(orEventQuery(event) == orSuccess);  // never recorded
  CHECK(orEventSynchronize(event) == orSuccess);
}

constexpr uint64_t kMillisecond = 1'000'000;

// A kernel takes a millisecond, and a semaphore wait an hour.
inline orSubscriber time_source() {
  orSubscriber table{};
  table.size = sizeof(table);
  table.version = OPENREG_SUBSCRIBER_VERSION;
  table.flags = orSubscribeTime;
  table.duration = [](void*, const orTaskInfo* task, uint64_t* nanoseconds) {
    *nanoseconds = task->kind == orTaskSemaphoreWait ? 3'600'000 * kMillisecond : kMillisecond;
    return 1;
  };
  return table;
}

// Pauses the engines while they execute the gate, which is then opened. The engine completes it, and takes no further
// look at its tasks.
inline void pause_at_the_gate(Scheduling& scheduling, Lock& lock) {
  std::thread opener([&] {
    const Lock own = scheduling.scheduler.lock();  // not before pause() waits for the gate, and releases the mutex
    scheduling.opened = true;
  });
  scheduling.scheduler.pause(lock);
  opener.join();
}

inline void a_query_ends_with_simulated_time() {
  Scheduling scheduling;
  Scheduler& scheduler = scheduling.scheduler;
  Lock lock = scheduler.lock();
  const orSubscription_t subscription = scheduler.subscribe(time_source(), nullptr, lock);
  const uint64_t ticket = scheduler.submit(scheduling.stream, scheduling.gate(), lock);
  lock.unlock();
  std::thread host([&] {
    Lock own = scheduler.lock();
    scheduler.run_for_query(&scheduling.stream, ticket, own);
  });
  scheduling.await_start();
  lock.lock();
  pause_at_the_gate(scheduling, lock);
  scheduler.unsubscribe(subscription, lock);
  scheduler.resume(lock);
  lock.unlock();
  host.join();
}

// The query belongs to a program that polls, so that it would advance simulated time to the next task, and the next
// task has no simulated time.
inline void a_query_that_outlives_simulated_time_does_not_advance_it() {
  Scheduling scheduling;
  Scheduler& scheduler = scheduling.scheduler;
  Stream& stream = scheduling.stream;
  Lock lock = scheduler.lock();
  Stream& waiting = scheduler.objects(lock).create_stream(*stream.device, 0);
  Stream& later = scheduler.objects(lock).create_stream(*stream.device, 0);
  TimelineSemaphore& semaphore = scheduler.semaphores(lock).create(0);
  const orSubscription_t subscription = scheduler.subscribe(time_source(), nullptr, lock);
  scheduler.wait_for_value(waiting, semaphore, 1, lock);
  const uint64_t first = scheduler.submit(stream, kernel(), lock);
  scheduler.submit(stream, scheduling.gate(), lock);
  for (int i = 0; i < 64; ++i) {  // the gate begins later than at the host's time
    scheduler.run_for_query(&waiting, waiting.submitted, lock);
  }
  CHECK(!scheduling.started);
  scheduler.wait(stream, *stream.device, first, lock);  // now the gate has begun
  lock.unlock();
  std::thread host([&] {
    Lock own = scheduler.lock();
    scheduler.run_for_query(&waiting, waiting.submitted, own);
  });
  scheduling.await_start();
  lock.lock();
  pause_at_the_gate(scheduling, lock);
  scheduler.signal(semaphore, 1, lock);
  scheduler.unsubscribe(subscription, lock);
  const uint64_t last = scheduler.submit(later, kernel(), lock);
  lock.unlock();
  host.join();
  lock.lock();
  scheduler.resume(lock);
  scheduler.wait(later, *later.device, last, lock);
}

}  // namespace parts
