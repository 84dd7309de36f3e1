// SPDX-License-Identifier: BSD-3-Clause
// Unit tests of the threads of the engines and the timer, which call a fake of the scheduler.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/spin_limit.h"
#include "engine/engine_threads.h"
#include "unit_common.h"

namespace parts {

// A fake EngineClient that counts calls. run() returns only when `opened` is true.
struct FakeWork final : EngineClient {
  Stream* next(Engine& engine) override { return engine.ready().pop(); }
  void run(Engine& engine, Stream& stream, Lock& lock) override {
    engine.begin(stream);
    lock.unlock();
    ++started;
    while (!opened) {
      std::this_thread::yield();
    }
    acquire(lock);
    uint64_t time = 0;
    engine.end(time);
    ++done;
  }
  uint64_t longest_sleep() override {
    ++asked;
    return longest;
  }
  void end_delay(Stream&) override { ++delays; }

  std::atomic<bool> opened{true};
  std::atomic<int> started{0};
  std::atomic<int> done{0};
  std::atomic<int> delays{0};
  std::atomic<int> asked{0};         // calls of longest_sleep()
  std::atomic<uint64_t> longest{0};  // what it returns
};

inline void await(const std::atomic<int>& count, int value) {
  while (count < value) {
    std::this_thread::yield();
  }
}

// The threads of the engines, and all that they are connected with.
struct Running {
  explicit Running(bool one_engine) : threads(mutex, engines, timer_queue, work, one_engine) {}

  std::mutex mutex;
  Stream stream;
  Engines engines;
  TimerQueue timer_queue;
  FakeWork work;
  EngineThreads threads;
};

inline void engines_work_until_they_are_stopped() {
  Running running(false);
  auto& [mutex, stream, engines, timer_queue, work, threads] = running;
  {
    const Lock lock = acquire(mutex);
    threads.start();
    engines[kCompute].make_ready(stream);
    engines[kCopy].make_ready(stream);
    timer_queue.add(now(), stream);
    timer_queue.add(now() + 3'600'000'000'000, stream);  // one hour; stop() does not wait that long
  }
  await(work.done, 2);
  await(work.delays, 1);
  threads.stop();
  const Lock lock = acquire(mutex);
  CHECK(engines[kCompute].stats().tasks == 1 && engines[kCopy].stats().tasks == 1);
  CHECK(engines[kCompute].is_stopped() && work.delays == 1);
  CHECK(refuses(orErrorDeinitialized, [&] { threads.start(); }));
}

inline void a_pause_waits_for_the_task_and_delays_the_next_one() {
  Running running(true);
  auto& [mutex, stream, engines, timer_queue, work, threads] = running;
  work.opened = false;
  {
    const Lock lock = acquire(mutex);
    threads.start();
    engines[kCompute].make_ready(stream);
  }
  await(work.started, 1);
  std::thread opener([&] { work.opened = true; });
  {
    Lock lock = acquire(mutex);
    threads.pause(lock);
    CHECK(work.done == 1 && !engines.any_running());
    engines[kCompute].make_ready(stream);
  }
  opener.join();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // time in which an engine could begin a task by mistake
  CHECK(work.started == 1);
  {
    const Lock lock = acquire(mutex);
    threads.resume();
  }
  await(work.done, 2);
  threads.stop();
}

// Under a seed, the time after which an engine looks for tasks again may be over, and a pause keeps it from looking.
inline void an_engine_sleeps_during_a_pause() {
  Running running(true);
  auto& [mutex, stream, engines, timer_queue, work, threads] = running;
  work.longest = 1;
  {
    const Lock lock = acquire(mutex);
    threads.start();
  }
  await(work.asked, 3);
  int asked = 0;
  {
    Lock lock = acquire(mutex);
    threads.pause(lock);
    asked = work.asked;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // time in which the engine would wake by mistake
  CHECK(work.asked == asked);
  {
    const Lock lock = acquire(mutex);
    threads.resume();
  }
  await(work.asked, asked + 3);
  threads.stop();
}

inline void polling_in_vain_is_given_up_and_tried_again() {
  std::mutex mutex;
  Lock lock = acquire(mutex);
  SpinLimit limit;
  // Returns true if the call polls, and finds what `happened` says.
  const auto polls = [&](bool happened) {
    bool has_polled = false;
    limit.poll(lock, [&] {
      has_polled = true;
      return happened;
    });
    CHECK(lock.owns_lock());
    return has_polled;
  };
  int waits = 0;
  while (polls(false)) {
    CHECK(++waits < 100);
  }
  CHECK(waits > 1);  // a single long wait changes nothing
  waits = 0;
  while (!polls(false)) {
    CHECK(++waits < 100);
  }
  CHECK(!polls(false));
  while (!polls(true)) {
    CHECK(++waits < 200);
  }
  CHECK(polls(false));
}

inline void a_host_thread_takes_the_place_of_an_engines_thread() {
  Running running(false);
  auto& [mutex, stream, engines, timer_queue, work, threads] = running;
  work.opened = false;
  std::thread host([&] {
    Lock lock = acquire(mutex);
    threads.start();
    CHECK(threads.is_free(engines[kCopy]));
    threads.run_on_caller(engines[kCopy], stream, lock);
  });
  await(work.started, 1);
  {
    const Lock lock = acquire(mutex);
    CHECK(!threads.is_free(engines[kCopy]) && threads.is_free(engines[kCompute]));
    engines[kCopy].make_ready(stream);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // time in which the engine could begin a task by mistake
  CHECK(work.started == 1);
  std::thread opener([&] { work.opened = true; });
  {
    Lock lock = acquire(mutex);
    threads.pause(lock);
    CHECK(work.done >= 1 && !engines.any_running());
    threads.resume();
  }
  host.join();
  opener.join();
  await(work.done, 2);  // the engine's thread has begun the task that waited
  threads.stop();
}

}  // namespace parts
