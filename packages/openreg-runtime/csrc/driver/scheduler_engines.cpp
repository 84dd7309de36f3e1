// SPDX-License-Identifier: BSD-3-Clause
// The threads that work queues off: the engines, and the timer that ends delays.
//
// REAL HW: engines are on the card; what is left of this file is the handler of its interrupts.
#include <algorithm>
#include <chrono>
#include <utility>

#include "error.h"
#include "execute.h"
#include "platform.h"
#include "scheduler.h"

namespace openreg::driver {

namespace {

// The timer looks at its deadlines at least this often; a standard library overflows on waits of centuries.
constexpr uint64_t kLongestNap = 3'600'000'000'000;

}  // namespace

void Scheduler::stop() {
  {
    Lock held = lock();
    stopping_ = true;
    for (Engine& engine : engines_) {
      engine.has_work = true;
      engine.work.notify_all();
    }
    timer_work_.notify_all();
  }
  for (Engine& engine : engines_) {
    if (engine.thread.joinable()) {
      engine.thread.join();
    }
  }
  if (timer_thread_.joinable()) {
    timer_thread_.join();
  }
  const Lock held = lock();
  stopped_ = true;
  for (Stream& stream : streams_.objects()) {
    stream.progress.notify_all();
  }
  demand_met_.notify_all();
}

void Scheduler::start_engines() {
  OPENREG_DRIVER_CHECK(!stopping_, orErrorDeinitialized, "the process is exiting and the device has stopped");
  const auto start_engine = [this](EngineIndex index) {
    if (!engines_[index].thread.joinable()) {
      engines_[index].thread = std::thread([this, index] { run_engine(index); });
    }
  };
  start_engine(kCompute);
  // With a seed one thread does everything: a second one would let time pass while the first runs a task.
  if (!seeded_.has_value()) {
    start_engine(kCopy);
    timer_thread_ = std::thread([this] { run_timer(); });
  }
  started_ = true;
}

void Scheduler::run_engine(EngineIndex index) {
  platform::name_thread(index == kCompute ? "openreg_compute" : "openreg_copy");
  on_engine() = true;
  Engine& engine = engines_[index];
  Lock held = lock();
  while (!stopping_) {
    Stream* stream = next_stream(engine);
    if (stream == nullptr) {
      idle(engine, held);
    } else {
      run_task(engine, *stream, held);
    }
  }
}

void Scheduler::run_task(Engine& engine, Stream& stream, Lock& lock) {
  const Task task = stream.queue.front();
  Device& device = *stream.device;
  const bool skip = device.failed;
  engine.running = &stream;
  engine.running_device = &device;
  engine.running_since = now();
  const uint64_t begin = seeded_.has_value() ? clock() : engine.running_since;
  lock.unlock();
  current_device() = device.index;
  Counters counters;
  Failure failure = execute(task, skip, counters);
  take(lock);
  const uint64_t end = now();  // with the lock: who asked meanwhile was told a time up to then, and it never goes back
  engine.running = nullptr;
  engine.running_device = nullptr;
  if (pauses_ > 0) {
    quiet_.notify_all();
  }
  counters.busy_nanoseconds = end - engine.running_since;
  ++engine.tasks;
  engine.busy_nanoseconds += counters.busy_nanoseconds;
  stream.counters.add(counters);
  device.counters.add(counters);
  device.busy.add(engine.running_since, end);
  orError_t result = orSuccess;
  if (skip || !failure.text.empty()) {
    result = failure.device_lost || (skip && device.lost) ? orErrorDeviceLost : orErrorLaunchFailure;
  }
  if (!failure.text.empty() && !device.failed) {
    device.lost = failure.device_lost;
    fail_device(device, std::move(failure.text));
  }
  if (seeded_.has_value()) {
    pass_virtual_time(duration_of(stream, task));
  }
  if (task.observation != 0) {
    Outcome& outcome = observers_.outcome(task.observation);
    outcome.begin = begin;
    outcome.end = seeded_.has_value() ? clock() : end;
    outcome.engine = static_cast<int>(&engine - engines_.data());
    outcome.status = result;
    outcome.skipped = skip;
  }
  unblocked_.push_back(&stream);
  settle();
}

Stream* Scheduler::next_stream(Engine& engine) {
  if (pauses_ > 0) {
    engine.has_work.store(false, std::memory_order_relaxed);
    return nullptr;
  }
  return seeded_.has_value() ? take_demanded(engine) : take_ready(engine);
}

void Scheduler::idle(Engine& engine, Lock& lock) {
  // Looks for more work for about as long as waking it would take.
  lock.unlock();
  const uint64_t deadline = now() + kWakeNanoseconds;
  while (!engine.has_work.load(std::memory_order_relaxed) && now() < deadline) {
    platform::relax();
  }
  take(lock);
  engine.sleeping = true;
  const auto is_needed = [&] { return engine.has_work.load(std::memory_order_relaxed) || stopping_; };
  if (const uint64_t time = patience_left()) {
    engine.work.wait_for(lock, std::chrono::nanoseconds(time), is_needed);
  } else {
    engine.work.wait(lock, is_needed);
  }
  engine.sleeping = false;
}

Stream* Scheduler::take_ready(Engine& engine) {
  for (auto& level : engine.ready) {
    if (!level.empty()) {
      Stream* stream = level.front();
      level.pop_front();
      return stream;
    }
  }
  engine.has_work.store(false, std::memory_order_relaxed);
  return nullptr;
}

void Scheduler::make_ready(Stream& stream, EngineIndex index) {
  Engine& engine = engines_[seeded_.has_value() ? kCompute : index];  // one task at a time
  engine.ready[static_cast<size_t>(stream.priority - kGreatestPriority)].push_back(&stream);
  wake(engine);
}

void Scheduler::wake(Engine& engine) {
  engine.has_work.store(true, std::memory_order_relaxed);
  if (engine.sleeping) {
    engine.work.notify_one();
  }
}

void Scheduler::run_timer() {
  platform::name_thread("openreg_timer");
  Lock held = lock();
  while (!stopping_) {
    if (deadlines_.empty()) {
      timer_work_.wait(held);
      continue;
    }
    const auto [deadline, stream] = deadlines_.top();
    const uint64_t time = now();
    if (time < deadline) {
      timer_work_.wait_for(held, std::chrono::nanoseconds(std::min(deadline - time, kLongestNap)));
      continue;
    }
    deadlines_.pop();
    unblocked_.push_back(stream);
    settle();
  }
}

}  // namespace openreg::driver
