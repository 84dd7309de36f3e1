// SPDX-License-Identifier: BSD-3-Clause
// The command processor: queues, and the dependencies between them.
//
// REAL HW: hardware queues and semaphores in device memory; the driver writes a doorbell instead of waking a thread.
#include "scheduler.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "error.h"
#include "execute.h"
#include "platform.h"
#include "scheduler_demand.h"

namespace openreg::driver {

namespace {

// A copy of this size takes longer than waking a sleeping engine, so that a second engine pays.
constexpr size_t kCopyEngineThreshold = size_t{1} << 20;

void check_may_wait() {
  OPENREG_DRIVER_CHECK(!on_engine(), orErrorNotSupported,
                       "called by a kernel, which must not wait for other work; wait on the host instead");
}

// Semaphores are made for communication, so a handle may well come from another process. Handles differ between
// processes in their generation, as far as 32 bits can.
uint32_t generation_of_this_process() {
  constexpr uint64_t kOddConstant = 0x9e3779b97f4a7c15;  // of Fibonacci hashing: spreads neighbouring numbers
  return static_cast<uint32_t>(((platform::process_id() ^ now()) * kOddConstant) >> 32) | 1U;
}

}  // namespace

uint64_t now() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

Scheduler::Scheduler(const AddressSpace& space, std::vector<std::unique_ptr<Device>>& devices, Faults& faults,
                     const Settings& settings)
    : space_(space),
      devices_(devices),
      faults_(faults),
      launch_blocking_(settings.launch_blocking),
      semaphores_(generation_of_this_process()) {
  if (settings.schedule_seed.has_value()) {
    seeded_.emplace(*settings.schedule_seed);
  }
  Lock held = lock();
  for (auto& device : devices_) {
    device->default_stream = &create_stream(*device, kLeastPriority, held);
  }
}

Lock Scheduler::lock() {
  Lock result(mutex_, std::defer_lock);
  take(result);
  return result;
}

// The mutex is held for less than a microsecond, and both sides ask for it with each launch: sleeping meanwhile would
// cost the one that sleeps, and the one that has to wake it, many times that.
void Scheduler::take(Lock& lock) {
  if (lock.try_lock()) {
    return;
  }
  const uint64_t deadline = now() + kWakeNanoseconds;
  while (now() < deadline) {
    platform::relax();
    if (lock.try_lock()) {
      return;
    }
  }
  lock.lock();
}

uint64_t Scheduler::submit(Stream& stream, const Task& task, Lock& lock, const Operands& operands) {
  make_room(stream, lock);
  if (stream.capture != nullptr) {
    record_node(stream, task, 0, 0, operands);
    return stream.completed;  // nothing was enqueued
  }
  const uint64_t ticket = append(stream, task, lock, operands);
  relieve_backlog(lock);
  return ticket;
}

bool Scheduler::try_submit(Stream& stream, const Task& task, Lock& lock, const Operands& operands) {
  check_open(stream, lock);
  if (is_blocking(stream, lock) || stream.queue.size() >= kStreamCapacity || (seeded_.has_value() && has_backlog())) {
    return false;
  }
  if (stream.capture != nullptr) {
    record_node(stream, task, 0, 0, operands);
  } else {
    append(stream, task, lock, operands);
    relieve_backlog(lock);  // notes the submission; there is none to relieve
  }
  return true;
}

// Keeps the lock.
uint64_t Scheduler::append(Stream& stream, const Task& task, const Lock& lock, const Operands& operands,
                           uint64_t graph_launch) {
  start(lock);
  Task& entry = stream.queue.push(task);
  if (faults_.armed()) [[unlikely]] {
    inject_fault(stream, entry);
  }
  ++pending_;
  const uint64_t ticket = ++stream.submitted;
  if (observers_.any()) [[unlikely]] {
    observe_submit(stream, entry, operands, graph_launch);
  }
  if (!stream.busy) {
    advance(stream);
    settle();
  }
  return ticket;
}

// Here and not on the engine, so that with one launching thread the n-th operation is always the same one.
void Scheduler::inject_fault(const Stream& stream, Task& task) {
  const bool is_kernel = task.kind == Task::Kind::kKernel && task.kernel.function != nullptr;
  if (!is_kernel && task.kind != Task::Kind::kCopy && task.kind != Task::Kind::kFill) {
    return;
  }
  const int device = stream.device->index;
  if (faults_.strikes(is_kernel ? FaultKind::kLaunch : FaultKind::kCopy, device)) {
    task.injected = Task::Injected::kFailure;
  }
  if (faults_.strikes(FaultKind::kLoss, device)) {
    task.injected = Task::Injected::kDeviceLoss;
  }
}

void Scheduler::submit_and_wait(Stream& stream, const Task& task, Lock& lock, const Operands& operands) {
  check_may_wait();  // before the task is taken
  check_not_capturing(stream, lock);
  const Device& device = *stream.device;
  const uint64_t ticket = submit(stream, task, lock, operands);
  wait(stream, device, ticket, lock);
}

void Scheduler::make_room(Stream& stream, Lock& lock) {
  const uint32_t generation = stream.generation;
  while (stream.queue.size() >= kStreamCapacity) {
    // Until a few are free: a wake-up for each single entry would be slow, and a long wait would keep an interpreter
    // from handling Ctrl-C between two launches.
    wait_for_ticket(stream, stream.submitted - (kStreamCapacity - kRoomToMake), lock);
    OPENREG_DRIVER_CHECK(stream.generation == generation, orErrorInvalidResourceHandle,
                         "the stream was destroyed by another thread while this call waited for room in its queue");
  }
  check_open(stream, lock);
}

void Scheduler::check_not_spoiled(const Capture& capture) {
  OPENREG_DRIVER_CHECK(capture.spoiled_by.empty(), orErrorStreamCaptureInvalidated,
                       "the capture of this stream was spoiled: ", capture.spoiled_by,
                       "; end it with orStreamEndCapture()");
}

void Scheduler::wait(Stream& stream, const Device& device, uint64_t ticket, Lock& lock, orEvent_t event) {
  wait_for_ticket(stream, ticket, lock);
  if (observers_.any()) {
    observe_sync(event == nullptr ? orSyncStream : orSyncEvent, device, &stream, ticket, event);
  }
  check_healthy(device, lock);
}

void Scheduler::drain(Device& device, Lock& lock) {
  check_may_block(device, lock);
  // Streams made while we wait are not this call's business; the deque keeps addresses.
  const size_t count = streams_.objects().size();
  for (size_t i = 0; i < count; ++i) {
    Stream& stream = streams_.objects()[i];
    if (stream.device == &device) {
      wait_for_ticket(stream, stream.submitted, lock);
    }
  }
  if (observers_.any()) {
    observe_sync(orSyncDevice, device, nullptr, 0);
  }
}

void Scheduler::pause(Lock& lock) {
  check_may_wait();
  ++pauses_;
  const auto idle = [](const Engine& engine) { return engine.running == nullptr; };
  quiet_.wait(lock, [&] { return std::all_of(engines_.begin(), engines_.end(), idle); });
}

void Scheduler::resume(const Lock& /*lock*/) {
  if (--pauses_ > 0) {
    return;
  }
  for (Engine& engine : engines_) {
    wake(engine);  // one that finds nothing sleeps again
  }
}

void Scheduler::refuse(const Device& device) {
  OPENREG_DRIVER_CHECK(!device.lost, orErrorDeviceLost, "device ", device.index, " is lost: ", device.failure,
                       "; start the process again to use it");
  throw Error(orErrorLaunchFailure, join("device ", device.index, " is in an error state: ", device.failure,
                                         "; later work was skipped, reset the device to use it again"));
}

// Moves the stream on as far as it goes without an engine. Afterwards it is empty, or its head is with somebody.
void Scheduler::advance(Stream& stream) {
  stream.busy = true;
  while (!stream.queue.empty()) {
    const Task& head = stream.queue.front();
    if (head.observation != 0) [[unlikely]] {
      observers_.outcome(head.observation).begin = clock();
    }
    if (!pass_head(stream, head)) {
      return;
    }
    complete_head(stream);
  }
  stream.busy = false;
  if (!stream.alive) {
    streams_.recycle(stream);
  }
}

// True when the head is done already; otherwise it was handed to whoever will complete it.
bool Scheduler::pass_head(Stream& stream, const Task& head) {
  switch (head.kind) {
    case Task::Kind::kWait:
      if (head.wait.stream->completed >= head.wait.ticket) {
        return true;
      }
      head.wait.stream->dependents.push_back({&stream, head.wait.ticket});
      return false;
    case Task::Kind::kSemaphoreWait:
      return pass_semaphore_wait(stream, head.semaphore);
    case Task::Kind::kTimestamp:
      if (head.timestamp.event->record == head.timestamp.record) {
        head.timestamp.event->nanoseconds = clock();
      }
      return true;
    case Task::Kind::kDelay: {
      if (stream.device->failed) {
        return true;
      }
      const uint64_t time = clock();
      const uint64_t longest = std::numeric_limits<uint64_t>::max() - time;
      deadlines_.emplace(time + std::min(head.delay, longest), &stream);
      timer_work_.notify_one();
      return false;
    }
    case Task::Kind::kCopy:
      make_ready(stream, head.copy.size >= kCopyEngineThreshold ? kCopy : kCompute);
      return false;
    case Task::Kind::kKernel:
    case Task::Kind::kHostFunction:
    case Task::Kind::kFill:
      make_ready(stream, kCompute);
      return false;
  }
  return true;
}

void Scheduler::complete_head(Stream& stream) {
  const Task& head = stream.queue.front();
  if (head.kind == Task::Kind::kSemaphoreWait) {
    --head.semaphore.semaphore->waits;
  }
  if (head.observation != 0) [[unlikely]] {
    observe_complete(stream, head);
  }
  stream.queue.pop();
  --pending_;
  stream.completed.store(stream.completed.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  if (stream.completed >= stream.wake_at) {
    stream.wake_at = kNobodyWaits;
    stream.progress.notify_all();
  }
  const auto waits = [&](const Dependent& dependent) { return dependent.ticket > stream.completed; };
  const auto done = std::partition(stream.dependents.begin(), stream.dependents.end(), waits);
  for (auto it = done; it != stream.dependents.end(); ++it) {
    unblocked_.push_back(it->stream);
  }
  stream.dependents.erase(done, stream.dependents.end());
}

// A loop over a list, not a recursion: chains of waits between streams can be as long as their queues.
void Scheduler::settle() {
  while (!unblocked_.empty()) {
    Stream& stream = *unblocked_.front();
    unblocked_.pop_front();
    complete_head(stream);
    advance(stream);
  }
}

// Looks without the lock for about as long as waking this thread would take: short work, like reading one number, is
// done by then.
void Scheduler::look_for(const Stream& stream, uint64_t ticket, Lock& lock) {
  if (seeded_.has_value()) {
    return;
  }
  lock.unlock();
  const uint64_t deadline = now() + kWakeNanoseconds;
  while (stream.completed.load(std::memory_order_acquire) < ticket && now() < deadline) {
    platform::relax();
  }
  take(lock);
}

void Scheduler::wait_for_ticket(Stream& stream, uint64_t ticket, Lock& lock) {
  if (stream.completed >= ticket) {
    return;
  }
  check_may_wait();
  const Demand demand(*this, &stream, ticket, lock);
  look_for(stream, ticket, lock);
  while (stream.completed < ticket) {
    OPENREG_DRIVER_CHECK(!stopped_, orErrorDeinitialized, "the process is exiting and the work waited for was dropped");
    stream.wake_at = std::min(stream.wake_at, ticket);
    stream.progress.wait(lock);
  }
}

}  // namespace openreg::driver
