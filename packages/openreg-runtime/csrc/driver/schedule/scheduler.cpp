// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the driver writes commands into a ring in memory and writes to a doorbell register. To wait, it polls a
// counter in memory.
#include "schedule/scheduler.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/steady_time.h"
#include "engine/execute.h"

namespace openreg::driver {

namespace {

// In bytes. A copy of this size takes less time than waking a sleeping thread.
constexpr size_t kHostCopyLimit = size_t{64} << 10;

std::unique_ptr<SeededOrder> make_order(const Settings& settings) {
  return settings.schedule_seed.has_value() ? std::make_unique<SeededOrder>(*settings.schedule_seed) : nullptr;
}

// Returns the id of the capture that records the stream's tasks, or 0 if there is none.
uint64_t capture_id(const Stream& stream) {
  return stream.capture == nullptr ? 0 : stream.capture->id;
}

}  // namespace

Scheduler::Scheduler(const AddressSpace& space, std::vector<std::unique_ptr<Device>>& devices, Faults& faults,
                     const Settings& settings)
    : launch_blocking_(settings.launch_blocking),
      order_(make_order(settings)),
      clock_(order_.get(), simulated_time_),
      objects_(devices),
      captures_(objects_, mutex_),
      tracer_(subscribers_, space, clock_),
      semaphores_(order_ != nullptr, objects_, tracer_, completions_),
      processor_(objects_, engines_, timer_queue_, semaphores_, tracer_, faults, clock_, simulated_time_, completions_),
      replay_(processor_),
      seeded_(order_ == nullptr
                  ? nullptr
                  : std::make_unique<SeededSchedule>(settings.schedule_timeout, *order_, engines_[kCompute],
                                                     timer_queue_, semaphores_, processor_, tracer_)),
      simulated_schedule_(engines_[kCompute], simulated_time_, processor_, tracer_),
      deferred_schedule_(seeded_.get()),
      task_runner_(processor_, semaphores_, tracer_, deferred_schedule_),
      threads_(mutex_, engines_, timer_queue_, task_runner_, order_ != nullptr) {
  engines_.set_one_at_a_time(order_ != nullptr);
  for (auto& device : devices) {
    device->default_stream = &objects_.create_stream(*device, kLeastPriority);
  }
}

uint64_t Scheduler::submit(Stream& stream, const Task& task, Lock& lock, const OperandSpan& operands) {
  wait_for_capacity(stream, lock);
  if (stream.capture != nullptr) {
    record(stream, task, operands);
    return stream.completed;  // nothing was enqueued
  }
  threads_.start();
  const uint64_t ticket = processor_.enqueue(stream, task, operands);
  limit_backlog(lock);
  return ticket;
}

bool Scheduler::try_submit(Stream& stream, const Task& task, Lock& lock, const OperandSpan& operands) {
  stream.device->check_healthy();
  CaptureManager::check_valid(stream);
  if (is_blocking(stream, lock) || stream.queue.size() >= kStreamCapacity ||
      (deferred_schedule_ != nullptr && deferred_schedule_->has_backlog())) {
    return false;
  }
  if (stream.capture != nullptr) {
    record(stream, task, operands);
    return true;
  }
  threads_.start();
  processor_.enqueue(stream, task, operands);
  limit_backlog(lock);  // only records the launch, because has_backlog() was false
  return true;
}

bool Scheduler::try_copy(Stream& stream, const Task::Copy& copy, const Lock& /*lock*/) {
  if (stream.busy || stream.capture != nullptr || stream.device->failed || subscribers_.may_call() ||
      deferred_schedule_ != nullptr || threads_.is_paused() || processor_.injects_faults()) {
    return false;
  }
  std::memcpy(copy.destination, copy.source, copy.size);
  Counters counters;
  counters.copies = 1;
  counters.bytes_copied = copy.size;
  stream.counters.add(counters);
  stream.device->counters.add(counters);
  return true;
}

void Scheduler::submit_and_wait(Stream& stream, const Task& task, Lock& lock, const OperandSpan& operands) {
  check_not_engine_thread();  // before the task is enqueued
  CaptureManager::check_not_capturing(stream);
  const Device& device = *stream.device;
  wait_for_capacity(stream, lock);
  const uint64_t resets = device.resets;  // the mutex may be released after the task was enqueued
  uint64_t ticket = 0;
  if (may_execute_here(stream, task)) {
    threads_.start();
    ticket = processor_.enqueue_for_caller(stream, task);
    threads_.run_on_caller(engines_[kCopy], stream, lock);
  } else {
    ticket = submit(stream, task, lock, operands);
  }
  wait_since(resets, stream, device, ticket, lock, nullptr);
}

// Kernels are excluded, because only one thread of the process may start OpenMP's parallel regions (Engines).
bool Scheduler::may_execute_here(const Stream& stream, const Task& task) const {
  return task.kind == Task::Kind::kCopy && task.copy.size <= kHostCopyLimit && !stream.busy &&
         deferred_schedule_ == nullptr && threads_.is_free(engines_[kCopy]);
}

void Scheduler::wait_for_capacity(Stream& stream, Lock& lock) {
  const uint32_t generation = stream.generation;
  const uint64_t capture = capture_id(stream);
  while (stream.queue.size() >= kStreamCapacity) {
    // Waits until there is room for 64 tasks. Waking this thread after each task would be slow, and during a long wait
    // an interpreter could not handle Ctrl-C.
    wait_for_ticket(stream, stream.submitted - kStreamLowWatermark, lock);
    OPENREG_DRIVER_CHECK(
        stream.generation == generation, orErrorInvalidResourceHandle,
        "the stream was destroyed by another thread while this call waited for room in its queue; destroy a "
        "stream when no other thread uses it");
    OPENREG_DRIVER_CHECK(
        capture_id(stream) == capture, orErrorStreamCaptureUnsupported,
        "another thread began or ended a capture of the stream while this call waited for room in its queue; let one "
        "thread use a stream while it captures, and make the call again");
  }
  stream.device->check_healthy();
  CaptureManager::check_valid(stream);
}

void Scheduler::launch_graph(const std::shared_ptr<GraphBody>& body, Stream& stream, Lock& lock) {
  if (launch_blocking_) {
    check_not_engine_thread();  // before the tasks are enqueued
  }
  GraphReplay::check_launch(*body, stream);
  wait_for_capacity(stream, lock);
  for (const Stream* branch : body->branches) {
    (branch == nullptr ? stream : *branch).device->check_healthy();
  }
  threads_.start();
  const Device& device = *stream.device;
  const uint64_t resets = device.resets;  // limit_backlog() may release the mutex
  const uint64_t ticket = replay_.enqueue(body, stream);
  limit_backlog(lock);
  if (launch_blocking_) {
    wait_since(resets, stream, device, ticket, lock, nullptr);
  }
}

void Scheduler::wait_for_value(Stream& stream, TimelineSemaphore& semaphore, uint64_t value, Lock& lock) {
  CaptureManager::check_may_wait_outside(stream);
  tracer_.semaphore(orSyncSemaphoreWait, semaphore, value, &stream);
  if (semaphore.reached >= value) {
    return;
  }
  threads_.start();
  const Task task = semaphores_.make_wait(semaphore, value);
  try {
    processor_.enqueue(stream, task);
  } catch (...) {
    Semaphores::drop_wait(task.semaphore);  // the host has no memory for the task
    throw;
  }
  limit_backlog(lock);
}

void Scheduler::signal(TimelineSemaphore& semaphore, uint64_t value, const Lock& /*lock*/) {
  semaphores_.signal(semaphore, value);
  advance_after_signal();
}

void Scheduler::fail(TimelineSemaphore& semaphore, std::string reason, const Lock& /*lock*/) {
  semaphores_.fail(semaphore, std::move(reason));
  advance_after_signal();
}

void Scheduler::advance_after_signal() {
  if (seeded_ != nullptr) {
    seeded_->note_signal();
  } else {
    processor_.settle();
  }
}

void Scheduler::wait(Stream& stream, const Device& device, uint64_t ticket, Lock& lock, orEvent_t event) {
  wait_since(device.resets, stream, device, ticket, lock, event);
}

void Scheduler::wait_since(uint64_t resets, Stream& stream, const Device& device, uint64_t ticket, Lock& lock,
                           orEvent_t event) {
  wait_for_ticket(stream, ticket, lock);
  tracer_.sync(event == nullptr ? orSyncStream : orSyncEvent, device, &stream, ticket, event);
  device.check_healthy_since(resets);
}

void Scheduler::drain(Device& device, Lock& lock) {
  captures_.check_may_block(device);
  // Streams that are created while this call blocks are ignored.
  const size_t count = objects_.streams().size();
  for (size_t i = 0; i < count; ++i) {
    Stream& stream = objects_.streams()[i];
    if (stream.device == &device) {
      wait_for_ticket(stream, stream.submitted, lock);
    }
  }
  tracer_.sync(orSyncDevice, device, nullptr, 0);
}

bool Scheduler::run_deferred(Stream* stream, uint64_t ticket, Lock& lock) {
  if (is_engine_thread()) {
    return false;
  }
  threads_.start();
  return deferred_schedule_->run_for_query(stream, ticket, lock);
}

void Scheduler::record(Stream& stream, const Task& task, const OperandSpan& operands) {
  const uint64_t node = captures_.record(stream, task, operands);
  tracer_.captured(stream, task, operands, node);
}

void Scheduler::begin_capture(Stream& stream, orStreamCaptureMode mode, const Lock& /*lock*/) {
  captures_.begin(stream, mode);
  update_operands_wanted();
}

void Scheduler::end_capture(Stream& stream, std::shared_ptr<GraphBody>& body, std::string& invalidated_by,
                            const Lock& /*lock*/) {
  captures_.end(stream, body, invalidated_by);
  update_operands_wanted();
}

orSubscription_t Scheduler::subscribe(const orSubscriber& table, void* user, Lock& lock) {
  const auto check_no_time_source = [&] {
    OPENREG_DRIVER_CHECK(subscribers_.time_source() == nullptr, orErrorIllegalState,
                         "another subscription keeps the time; end it first with orUnsubscribe()");
  };
  SubscriberList::check(table);  // before a time source runs what is queued
  const bool keeps_time = (table.flags & orSubscribeTime) != 0;
  if (keeps_time) {
    OPENREG_DRIVER_CHECK(
        seeded_ == nullptr, orErrorNotSupported,
        "OPENREG_SCHEDULE_SEED is set, and its schedule excludes a time source; unset it, and start the process again");
    check_no_time_source();
    empty_all_queues(lock);
    check_no_time_source();  // another thread may have subscribed one meanwhile
  }
  const orSubscription_t handle = SubscriberList::handle(subscribers_.subscribe(table, user));
  if (keeps_time) {
    simulated_time_.begin(now());
    set_deferred_schedule(&simulated_schedule_);
  }
  update_operands_wanted();
  return handle;
}

// Blocks until all queues are empty at the same time. Does not return as long as other threads keep enqueuing.
void Scheduler::empty_all_queues(Lock& lock) {
  check_not_engine_thread();
  while (processor_.pending() > 0) {
    const size_t count = objects_.streams().size();
    for (size_t i = 0; i < count; ++i) {
      Stream& stream = objects_.streams()[i];
      wait_for_ticket(stream, stream.submitted, lock);
    }
  }
}

void Scheduler::set_deferred_schedule(DeferredSchedule* schedule) {
  deferred_schedule_ = schedule;
  engines_.set_one_at_a_time(schedule != nullptr);
}

void Scheduler::unsubscribe(orSubscription_t handle, Lock& lock) {
  Subscription& subscription = subscribers_.find(handle);
  check_not_engine_thread();
  if (&subscription == subscribers_.time_source()) {
    empty_all_queues(lock);
    subscribers_.find(handle);  // throws if another thread has ended the subscription meanwhile
    simulated_time_.end();
    set_deferred_schedule(nullptr);
    // The engine may have been paused since the last task, and does not look at the requests any more.
    simulated_schedule_.give_up_requests();
  }
  std::vector<std::pair<Stream*, uint64_t>> observed;
  for (Stream& stream : objects_.streams()) {
    if (stream.completed < stream.observed) {
      observed.emplace_back(&stream, stream.observed);
    }
  }
  subscribers_.close(subscription);
  update_operands_wanted();
  for (const auto& [stream, ticket] : observed) {
    wait_for_ticket(*stream, ticket, lock);
  }
  const std::string failure = subscription.failure;
  subscribers_.recycle(subscription);
  OPENREG_DRIVER_CHECK(
      failure.empty(), orErrorIllegalState,
      "the subscription has ended, but not all of its callbacks were called: ", failure,
      "; catch exceptions inside of the callbacks, because none of them is called after the first exception");
}

void Scheduler::update_operands_wanted() {
  operands_wanted_.store(subscribers_.wants_operands() || captures_.any(), std::memory_order_relaxed);
}

void Scheduler::wait_for_ticket(Stream& stream, uint64_t ticket, Lock& lock) {
  if (stream.completed < ticket) {
    check_not_engine_thread();
    WaitRequest request(stream, ticket, is_progress_thread());
    const DeferredSchedule::WaitRequestGuard registration(deferred_schedule_, request);
    if (deferred_schedule_ == nullptr) {
      spin_limit_.poll(lock, [&] { return stream.completed.load(std::memory_order_acquire) >= ticket; });
    }
    while (stream.completed < ticket) {
      OPENREG_DRIVER_CHECK(!stopped_, orErrorDeinitialized,
                           "the process is exiting and the work that this call waited for was dropped; wait for it "
                           "before the process exits");
      stream.wake_at = std::min(stream.wake_at, ticket);
      stream.progress.wait(lock);
    }
  }
  if (simulated_time_.is_on() && !is_progress_thread()) {
    simulated_time_.wait_until(simulated_time_.end_of(stream, ticket));
  }
}

void Scheduler::stop() {
  threads_.stop();
  const Lock held = lock();
  stopped_ = true;
  for (Stream& stream : objects_.streams()) {
    stream.progress.notify_all();
  }
  if (deferred_schedule_ != nullptr) {
    deferred_schedule_->stop();
  }
}

}  // namespace openreg::driver
