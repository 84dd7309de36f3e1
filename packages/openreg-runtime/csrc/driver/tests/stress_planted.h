// SPDX-License-Identifier: BSD-3-Clause
// Faults planted on purpose, one per kind that a sanitizer or the program's own checks are there for: run_stress.py
// expects a report of each before it believes that silence means anything. All of them happen on, or together with, an
// engine's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "openreg.h"
#include "stress_common.h"
#include "stress_subscriber.h"

namespace stress {

// Apart, as ThreadSanitizer remembers four accesses of each eight bytes, and a flag that is waited for takes them.
struct Racing {
  alignas(64) uint32_t cell = 0;
  alignas(64) std::atomic<bool> started{false};
};

// The host writes what a running kernel writes. The flag makes sure that it runs, and orders nothing.
inline void plant_race() {
  Racing racing;
  const orKernel kernel{"race",
                        [](void* state, char*, size_t) {
                          auto* shared = static_cast<Racing*>(state);
                          shared->started.store(true, std::memory_order_relaxed);
                          ++shared->cell;
                          return orSuccess;
                        },
                        &racing, nullptr};
  CHECK(orLaunchKernel(nullptr, &kernel) == orSuccess);
  while (!racing.started.load(std::memory_order_relaxed)) {
  }
  ++racing.cell;
  CHECK(orDeviceSynchronize() == orSuccess);
}

// The host writes what a callback writes, without having unsubscribed.
inline void plant_early_look() {
  Racing racing;
  orSubscriber table{};
  table.size = sizeof(table);
  table.version = OPENREG_SUBSCRIBER_VERSION;
  table.complete = [](void* user, const orTaskCompletion*) {
    auto* shared = static_cast<Racing*>(user);
    ++shared->cell;
    shared->started.store(true, std::memory_order_relaxed);
  };
  orSubscription_t subscription = nullptr;
  CHECK(orSubscribe(&table, &racing, &subscription) == orSuccess);
  CHECK(launch(nullptr, add_kernel, {nullptr, 0, 0}));
  while (!racing.started.load(std::memory_order_relaxed)) {
  }
  ++racing.cell;
  CHECK(orUnsubscribe(subscription) == orSuccess);
}

// An observer overlooks one complete: the check of the program itself has to notice.
inline void plant_forgotten() {
  Watcher(1).round(true);
}

// A kernel writes one element past the end of host memory.
inline void plant_overflow() {
  std::vector<uint32_t> cells(8);
  CHECK(launch(nullptr, add_kernel, {cells.data(), cells.size() + 1, 1}));
  CHECK(orDeviceSynchronize() == orSuccess);
}

// A kernel computes what C++ leaves undefined.
inline void plant_undefined() {
  int number = std::numeric_limits<int>::max();
  const orKernel kernel{"overflow",
                        [](void* state, char*, size_t) {
                          ++*static_cast<int*>(state);
                          return orSuccess;
                        },
                        &number, nullptr};
  CHECK(orLaunchKernel(nullptr, &kernel) == orSuccess);
  CHECK(orDeviceSynchronize() == orSuccess);
}

// Plants a leak: a kernel allocates memory that is never released. (A forgotten state would not do: the queue still
// holds its address.)
inline void plant_leak() {
  AddState* made = nullptr;
  const orKernel kernel{"leak",
                        [](void* state, char*, size_t) {
                          *static_cast<AddState**>(state) = new AddState{};
                          return orSuccess;
                        },
                        &made, nullptr};
  CHECK(orLaunchKernel(nullptr, &kernel) == orSuccess);
  CHECK(orDeviceSynchronize() == orSuccess);
  made = nullptr;
}

// False when there is no such fault.
inline bool plant(const char* name) {
  struct Fault {
    const char* name;
    void (*run)();
  };
  constexpr Fault kFaults[] = {{"race", plant_race},         {"early_look", plant_early_look},
                               {"overflow", plant_overflow}, {"undefined", plant_undefined},
                               {"leak", plant_leak},         {"forgotten", plant_forgotten}};
  for (const Fault& fault : kFaults) {
    if (std::strcmp(name, fault.name) == 0) {
      fault.run();
      return true;
    }
  }
  return false;
}

}  // namespace stress
