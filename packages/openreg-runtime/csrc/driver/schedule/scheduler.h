// SPDX-License-Identifier: BSD-3-Clause
// Takes work for the device, and waits for it. Composed of parts, each of which can be read and tested alone:
//
//   ObjectTable            streams, events and graphs, behind their handles
//   CaptureManager           what is recorded instead of run; GraphReplay launches it
//   CommandProcessor   the queues of the streams, and who waits for whom
//   Semaphores         waits that somebody outside of the device ends
//   TimerQueue          delays
//   Engines            what may run, and what runs
//   TaskRunner         which task is next, and what follows from how it went
//   DeferredSchedule           the same for work that is held back until the host needs it:
//   SeededSchedule       in the order that a seed selects,
//   SimulatedSchedule     or in that of a chip whose time is simulated (SimulatedTime)
//   EngineThreads      the threads that ask the task_runner
//   TaskTracer         tells SubscriberList of all that
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/faults.h"
#include "base/lock.h"
#include "base/settings.h"
#include "engine/engine_threads.h"
#include "engine/engines.h"
#include "memory/address_space.h"
#include "objects/capture_manager.h"
#include "objects/device.h"
#include "objects/object_table.h"
#include "objects/stream.h"
#include "observe/subscriber_list.h"
#include "observe/task_tracer.h"
#include "schedule/command_processor.h"
#include "schedule/completions.h"
#include "schedule/deferred_schedule.h"
#include "schedule/graph_replay.h"
#include "schedule/seeded_schedule.h"
#include "schedule/semaphores.h"
#include "schedule/simulated_schedule.h"
#include "schedule/task_runner.h"
#include "time/clock.h"
#include "time/seeded_order.h"
#include "time/simulated_time.h"
#include "time/timer_queue.h"

namespace openreg::driver {

constexpr size_t kStreamCapacity = 16384;                       // entries that a stream holds before launches block
constexpr uint64_t kStreamLowWatermark = kStreamCapacity - 64;  // entries at which a launch that blocked goes on

// Every function that takes a lock is to be called with lock() held; those that take it by a reference which is not
// const give it up for a while.
class Scheduler {
 public:
  Scheduler(const AddressSpace& space, std::vector<std::unique_ptr<Device>>& devices, Faults& faults,
            const Settings& settings);

  Lock lock() { return acquire(mutex_); }

  // The parts, for what concerns one of them alone.
  ObjectTable& objects(const Lock& /*lock*/) { return objects_; }
  CaptureManager& captures(const Lock& /*lock*/) { return captures_; }
  Semaphores& semaphores(const Lock& /*lock*/) { return semaphores_; }
  Engines& engines(const Lock& /*lock*/) { return engines_; }
  SubscriberList& observers(const Lock& /*lock*/) { return subscribers_; }
  TaskTracer& tracer(const Lock& /*lock*/) { return tracer_; }
  Stream& stream(orStream_t handle, const Lock& /*lock*/) { return objects_.stream(handle); }
  Event& event(orEvent_t handle, const Lock& /*lock*/) { return objects_.event(handle); }

  // Appends, or records in the stream's capture; blocks while the stream is full. Throws as wait_for_capacity() does,
  // and Error(orErrorDeinitialized) while the process exits; then the task is not taken. Returns the entry's ticket.
  uint64_t submit(Stream& stream, const Task& task, Lock& lock, const OperandSpan& operands = {});
  // The same, then wait(). When it throws, the task was not taken, or an engine is done with it.
  void submit_and_wait(Stream& stream, const Task& task, Lock& lock, const OperandSpan& operands = {});
  // The same as submit(), unless that could block or let other work run: false then, and the task is not taken. For
  // kernels, which launch_blocking() waits for.
  bool try_submit(Stream& stream, const Task& task, Lock& lock, const OperandSpan& operands);
  // Blocks while the stream is full; the next submit() then keeps the lock. Throws as Device::check_healthy() and
  // CaptureManager::check_valid() do, and Error(orErrorInvalidResourceHandle) when the stream was destroyed while this
  // call blocked.
  void wait_for_capacity(Stream& stream, Lock& lock);
  // Enqueues the work of a graph, as a whole: blocks only before. Throws as submit() and GraphReplay::check_launch()
  // do.
  void launch_graph(const std::shared_ptr<GraphBody>& body, Stream& stream, Lock& lock);
  // Enqueues a wait, unless it is over; after wait_for_capacity(). Throws as CaptureManager::check_may_wait_outside()
  // does.
  void wait_for_value(Stream& stream, TimelineSemaphore& semaphore, uint64_t value, Lock& lock);
  // Semaphores::signal() and fail(), and what follows.
  void signal(TimelineSemaphore& semaphore, uint64_t value, const Lock& lock);
  void fail(TimelineSemaphore& semaphore, std::string reason, const Lock& lock);

  // Waits until the ticket is done, which `event` marks if there is one. Throws Error(orErrorLaunchFailure) when
  // `device`, to which the stream belonged when the ticket was drawn, has failed, be it reset meanwhile;
  // Error(orErrorNotSupported) when called by a kernel; Error(orErrorDeinitialized) when the process exits first.
  void wait(Stream& stream, const Device& device, uint64_t ticket, Lock& lock, orEvent_t event = nullptr);
  // Waits for everything that all streams of the device hold now, unless CaptureManager::check_may_block() refuses.
  // Does not look at the error state.
  void drain(Device& device, Lock& lock);
  // EngineThreads::pause() and resume().
  void pause(Lock& lock) { threads_.pause(lock); }
  void resume(const Lock& /*lock*/) { threads_.resume(); }
  // Called by queries, which ask whether a ticket is done (of null: always). Where work is held back until the host
  // waits, a query lets some run. Whether it gave up the lock for a while.
  bool run_for_query(Stream* stream, uint64_t ticket, Lock& lock) {
    return deferred_schedule_ != nullptr && run_deferred(stream, ticket, lock);
  }
  // Whether a ticket is done (of null: always), by the host's clock if time is simulated.
  bool is_over(const Stream* stream, uint64_t ticket, const Lock& /*lock*/) const {
    return stream == nullptr ||
           (stream->completed >= ticket &&
            (!simulated_time_.is_on() || simulated_time_.end_of(*stream, ticket) <= simulated_time_.host()));
  }
  // Whether every kernel, copy and fill is to be waited for by the call that enqueues it, except in a capture.
  bool launch_blocking() const { return launch_blocking_; }
  bool is_blocking(const Stream& stream, const Lock& /*lock*/) const {
    return launch_blocking_ && stream.capture == nullptr;
  }

  // CaptureManager::begin() and end(), and what follows.
  void begin_capture(Stream& stream, orStreamCaptureMode mode, const Lock& lock);
  std::shared_ptr<GraphBody> end_capture(Stream& stream, std::string& invalidated_by, const Lock& lock);
  // One that keeps the time waits until nothing is queued. Throws as SubscriberList::subscribe() does;
  // Error(orErrorNotSupported) for one that keeps the time, with a seed; Error(orErrorIllegalState) for a second one.
  orSubscription_t subscribe(const orSubscriber& table, void* user, Lock& lock);
  // Waits for what the subscription has seen. Throws Error(orErrorIllegalState) afterwards when a callback threw.
  void unsubscribe(orSubscription_t handle, Lock& lock);
  // Whether the operands of a launch are used: by an observer, or by the replays of a capture. Needs no lock.
  bool operands_wanted() const { return operands_wanted_.load(std::memory_order_relaxed); }

  // Stops the engines after what they are running; queued entries are dropped, and who waits for one is told. For
  // process exit.
  void stop();

 private:
  void limit_backlog(Lock& lock) {
    if (deferred_schedule_ != nullptr) [[unlikely]] {
      deferred_schedule_->after_submit(lock);
    }
  }
  bool run_deferred(Stream* stream, uint64_t ticket, Lock& lock);
  void record(Stream& stream, const Task& task, const OperandSpan& operands);
  void empty_all_queues(Lock& lock);
  void set_deferred_schedule(DeferredSchedule* schedule);
  void take_signal();
  void spin_until(const Stream& stream, uint64_t ticket, Lock& lock);
  // wait(), for work that was enqueued when the device had been reset so often.
  void wait_since(uint64_t resets, Stream& stream, const Device& device, uint64_t ticket, Lock& lock, orEvent_t event);
  void wait_for_ticket(Stream& stream, uint64_t ticket, Lock& lock);
  void update_operands_wanted();

  const bool launch_blocking_;
  std::mutex mutex_;
  const std::unique_ptr<SeededOrder> order_;  // null without a seed
  SimulatedTime simulated_time_;
  const Clock clock_;
  Completions completions_;
  ObjectTable objects_;
  CaptureManager captures_;
  SubscriberList subscribers_;
  TaskTracer tracer_;
  Engines engines_;
  TimerQueue timer_queue_;
  Semaphores semaphores_;
  CommandProcessor processor_;
  GraphReplay replay_;
  const std::unique_ptr<SeededSchedule> seeded_;  // null without a seed
  SimulatedSchedule simulated_schedule_;
  DeferredSchedule* deferred_schedule_;  // one of these, or null; changes while nothing is queued
  TaskRunner task_runner_;
  EngineThreads threads_;
  std::atomic<bool> operands_wanted_{false};
  bool stopped_ = false;  // nothing runs any more
};

}  // namespace openreg::driver
