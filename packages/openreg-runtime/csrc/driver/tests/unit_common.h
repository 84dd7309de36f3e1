// SPDX-License-Identifier: BSD-3-Clause
// Helpers of the unit tests: tasks, and the parts of the scheduler connected without threads, so that a test completes
// the tasks itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "schedule/command_processor.h"
#include "stress_common.h"

namespace parts {

using namespace openreg::driver;

constexpr size_t kCapacity = size_t{1} << 20;
constexpr uint64_t kTimeout = 1'000'000'000;  // of a seeded schedule, in nanoseconds

// Returns true if the call throws Error(code).
template <class Call>
bool refuses(orError_t code, Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code() == code;
  }
  return false;
}

inline std::vector<std::unique_ptr<Device>> make_devices(const AddressSpace& space, int count) {
  std::vector<std::unique_ptr<Device>> devices;
  for (int index = 0; index < count; ++index) {
    devices.push_back(std::make_unique<Device>(space, index, kCapacity));
  }
  return devices;
}

inline Task kernel() {
  Task task;
  task.kind = Task::Kind::kKernel;
  task.kernel = {"part", [](void*, char*, size_t) { return orSuccess; }, nullptr, nullptr};
  return task;
}

inline Task wait_for(Stream& stream, uint64_t ticket) {
  Task task;
  task.kind = Task::Kind::kWait;
  task.wait = {&stream, ticket};
  return task;
}

inline Task delay(uint64_t nanoseconds) {
  Task task;
  task.kind = Task::Kind::kDelay;
  task.delay = nanoseconds;
  return task;
}

// All parts of the scheduler below the task runner. If `order` is not null, they are connected as for a seeded
// schedule.
struct Queues {
  explicit Queues(SeededOrder* order = nullptr)
      : clock(order, simulated), semaphores(order != nullptr, objects, tracer, completions) {
    engines.set_one_at_a_time(order != nullptr);
  }

  Stream& stream(int device = 0, int priority = 0) {
    return objects.create_stream(*devices[static_cast<size_t>(device)], priority);
  }
  // Completes the head of the next ready stream as if an engine had executed it. Returns the stream, or null if none is
  // ready.
  Stream* run_next() {
    Stream* stream = engines[kCompute].ready().pop();
    if (stream != nullptr) {
      processor.complete(*stream);
    }
    return stream;
  }

  AddressSpace space{2, kCapacity};
  std::vector<std::unique_ptr<Device>> devices = make_devices(space, 2);
  SimulatedTime simulated;
  const Clock clock;
  Faults faults;
  Completions completions;
  ObjectTable objects{devices};
  SubscriberList observers;
  TaskTracer tracer{observers, space, clock};
  Engines engines;
  TimerQueue timer_queue;
  Semaphores semaphores;
  CommandProcessor processor{objects, engines, timer_queue, semaphores, tracer, faults, clock, simulated, completions};
};

}  // namespace parts
