// SPDX-License-Identifier: BSD-3-Clause
// Scheduler enqueues tasks on streams and blocks host threads until tasks are complete. It consists of parts, each of
// which can be read and tested alone:
//
//   ObjectTable          the streams, events and graphs, behind their handles
//   CaptureManager       the captures, which record tasks instead of running them
//   GraphReplay          the launches of graphs
//   CommandProcessor     the heads (oldest tasks) of the streams: passes them to parts that complete them, removes them
//   Completions          the streams whose head is complete, but not removed yet
//   Semaphores           the semaphores, and the waits that end when the host signals a value
//   TimerQueue           the delays of streams
//   Engines              the streams that are ready for execution, and the tasks in execution
//   TaskRunner           the selection and execution of an engine's next task
//   DeferredSchedule     the selection of tasks if they are deferred until the host waits, in one of two orders:
//     SeededSchedule     the order that a seed (OPENREG_SCHEDULE_SEED) selects
//     SimulatedSchedule  the order of a chip whose time is simulated (SimulatedTime)
//   EngineThreads        the threads of the engines, which call the TaskRunner
//   TaskTracer           the reports of all tasks to the SubscriberList
//   Clock                the time of events and observers: steady, of the seeded schedule, or simulated
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
#include "base/spin_limit.h"
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

constexpr size_t kStreamCapacity = 16384;  // a call that enqueues blocks while the stream holds this many tasks
constexpr uint64_t kStreamLowWatermark = kStreamCapacity - 64;  // number of tasks at which such a call continues

// The scheduler of all devices. A ticket is the sequence number of a task in its stream. The caller of a function with
// a `Lock` parameter passes the result of lock(). A function with a non-const `Lock&` releases the mutex while it
// blocks.
class Scheduler {
 public:
  Scheduler(const AddressSpace& space, std::vector<std::unique_ptr<Device>>& devices, Faults& faults,
            const Settings& settings);

  // Locks the scheduler's mutex.
  Lock lock() { return acquire(mutex_); }

  // Return a part, or an object of a handle, for calls that need only that.
  ObjectTable& objects(const Lock& /*lock*/) { return objects_; }
  CaptureManager& captures(const Lock& /*lock*/) { return captures_; }
  Semaphores& semaphores(const Lock& /*lock*/) { return semaphores_; }
  Engines& engines(const Lock& /*lock*/) { return engines_; }
  SubscriberList& subscribers(const Lock& /*lock*/) { return subscribers_; }
  TaskTracer& tracer(const Lock& /*lock*/) { return tracer_; }
  Stream& stream(orStream_t handle, const Lock& /*lock*/) { return objects_.stream(handle); }
  Event& event(orEvent_t handle, const Lock& /*lock*/) { return objects_.event(handle); }

  // Enqueues a task and returns its ticket. If the stream is capturing, records the task instead, and returns a ticket
  // that is complete. Blocks while the stream is full. Throws as wait_for_capacity() does, and
  // Error(orErrorDeinitialized) while the process exits; the task is then not enqueued.
  uint64_t submit(Stream& stream, const Task& task, Lock& lock, const OperandSpan& operands = {});
  // Calls submit() and then blocks as wait() does. A short copy that no other task delays is executed by the calling
  // thread, because waking an engine and this thread again would take many times as long. Throws as both do, and as
  // CaptureManager::check_not_capturing() does. After an exception no engine will access the task's operands any more:
  // the task was not enqueued, has been completed, or was dropped at process exit.
  void submit_and_wait(Stream& stream, const Task& task, Lock& lock, const OperandSpan& operands = {});
  // Same as submit(), except that it enqueues nothing and returns false if it could block or would have to execute
  // deferred tasks. `task` must be a kernel: with launch_blocking(), the call returns false without looking at the kind
  // of task.
  bool try_submit(Stream& stream, const Task& task, Lock& lock, const OperandSpan& operands);
  // Executes a copy without enqueuing it, and counts it as executed. Does nothing and returns false if a task of the
  // stream is not complete, or if the copy would be recorded, reported, deferred, skipped or made to fail. Holds the
  // mutex meanwhile, so the copy must be short.
  bool try_copy(Stream& stream, const Task::Copy& copy, const Lock& lock);
  // Blocks while the stream is full, so that a submit() right afterwards enqueues its task before it can release the
  // mutex. Throws as Device::check_healthy() and CaptureManager::check_valid() do. Throws
  // Error(orErrorInvalidResourceHandle) if the stream was destroyed meanwhile, and
  // Error(orErrorStreamCaptureUnsupported) if another thread began or ended a capture of it: the caller has selected
  // what it enqueues, or records, before. If it blocks, also throws as wait() does on an engine thread and at process
  // exit.
  void wait_for_capacity(Stream& stream, Lock& lock);
  // Enqueues all tasks of a graph without releasing the mutex between them, and blocks before the first one while the
  // stream is full. Then blocks until they are complete if launch_blocking() is true. Throws as submit() and
  // GraphReplay::check_launch() do, and as wait() does if launch_blocking() is true.
  void launch_graph(const std::shared_ptr<GraphBody>& body, Stream& stream, Lock& lock);
  // Enqueues a wait for a value, unless the semaphore has reached it. Must be called right after wait_for_capacity().
  // Throws as CaptureManager::check_may_wait_outside() does.
  void wait_for_value(Stream& stream, TimelineSemaphore& semaphore, uint64_t value, Lock& lock);
  // Call Semaphores::signal() and Semaphores::fail(), and complete the waits that end, so that the next tasks of their
  // streams can begin. In a seeded schedule, the waits end in a later call of SeededSchedule::next().
  void signal(TimelineSemaphore& semaphore, uint64_t value, const Lock& lock);
  void fail(TimelineSemaphore& semaphore, std::string reason, const Lock& lock);

  // Blocks until `ticket` of the stream is complete. `device` is the device of that task, because the object of a
  // destroyed stream may be reused on another one. Subscribers see a wait for `event`, or for the stream if `event` is
  // null. Throws as Device::check_healthy_since() does if the device has failed, even if it was reset while the call
  // blocked. Throws Error(orErrorNotSupported) if it had to block on an engine thread, and Error(orErrorDeinitialized)
  // if the process exits first.
  void wait(Stream& stream, const Device& device, uint64_t ticket, Lock& lock, orEvent_t event = nullptr);
  // Blocks until all tasks that the device's streams hold now are complete. Throws as CaptureManager::check_may_block()
  // does. Does not check the device's error state.
  void drain(Device& device, Lock& lock);
  // Call EngineThreads::pause() and EngineThreads::resume().
  void pause(Lock& lock) { threads_.pause(lock); }
  void resume(const Lock& /*lock*/) { threads_.resume(); }
  // If tasks are deferred, executes some of them, so that a program that polls makes progress
  // (DeferredSchedule::run_for_query()). Does nothing on an engine thread. Must be called before each query of a
  // ticket. Returns true if the mutex may have been released.
  bool run_for_query(Stream* stream, uint64_t ticket, Lock& lock) {
    return deferred_schedule_ != nullptr && run_deferred(stream, ticket, lock);
  }
  // Returns true if `stream` is null or `ticket` is complete. If time is simulated, the task must also have ended by
  // the host's time.
  bool is_over(const Stream* stream, uint64_t ticket, const Lock& /*lock*/) const {
    return stream == nullptr ||
           (stream->completed >= ticket &&
            (!simulated_time_.is_on() || simulated_time_.end_of(*stream, ticket) <= simulated_time_.host()));
  }
  // Returns true if OPENREG_LAUNCH_BLOCKING is set: kernels, copies, fills and graph launches then block until they are
  // complete, except in a capture.
  bool launch_blocking() const { return launch_blocking_; }
  // Returns true if launches on `stream` block until they are complete.
  bool is_blocking(const Stream& stream, const Lock& /*lock*/) const {
    return launch_blocking_ && stream.capture == nullptr;
  }

  // Call CaptureManager::begin() and CaptureManager::end(), and update operands_wanted().
  void begin_capture(Stream& stream, orStreamCaptureMode mode, const Lock& lock);
  void end_capture(Stream& stream, std::shared_ptr<GraphBody>& body, std::string& invalidated_by, const Lock& lock);
  // Opens a subscription. If it is a time source (a subscriber that supplies simulated time), first blocks until all
  // queues are empty. Throws as SubscriberList::check() does. Throws Error(orErrorNotSupported) for a time source
  // with OPENREG_SCHEDULE_SEED or on an engine thread, and Error(orErrorIllegalState) for a second time source.
  orSubscription_t subscribe(const orSubscriber& table, void* user, Lock& lock);
  // Ends a subscription. Blocks until the tasks that it has seen are complete, and for a time source until all queues
  // are empty. Throws Error(orErrorNotSupported) on an engine thread. Throws Error(orErrorIllegalState) if a callback
  // has thrown; the subscription has then ended nevertheless.
  void unsubscribe(orSubscription_t handle, Lock& lock);
  // Returns true if the operands of launches are used: by a subscriber, or by a capture, which records them for its
  // replays. Thread-safe.
  bool operands_wanted() const { return operands_wanted_.load(std::memory_order_relaxed); }

  // Stops the engines at process exit, after the tasks that they execute. Tasks that are still queued are dropped, and
  // wait() throws Error(orErrorDeinitialized) for them. The caller does not hold the mutex.
  void stop();

 private:
  void limit_backlog(Lock& lock) {
    if (deferred_schedule_ != nullptr) [[unlikely]] {
      deferred_schedule_->after_submit(lock);
    }
  }
  bool run_deferred(Stream* stream, uint64_t ticket, Lock& lock);
  bool may_execute_here(const Stream& stream, const Task& task) const;
  void record(Stream& stream, const Task& task, const OperandSpan& operands);
  void empty_all_queues(Lock& lock);
  void set_deferred_schedule(DeferredSchedule* schedule);
  void advance_after_signal();
  // Same as wait(), except that `resets` is the value of Device::resets before the task was enqueued.
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
  DeferredSchedule* deferred_schedule_;  // seeded_ or simulated_schedule_, or null; changes while all queues are empty
  TaskRunner task_runner_;
  EngineThreads threads_;
  SpinLimit spin_limit_;  // of the host threads that wait
  std::atomic<bool> operands_wanted_{false};
  bool stopped_ = false;  // no task is executed any more
};

}  // namespace openreg::driver
