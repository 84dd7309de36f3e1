// SPDX-License-Identifier: BSD-3-Clause
// This file contains mistakes that the stress program makes on purpose, one for each kind that a sanitizer or its own
// checks must find. run_stress.py requires a report of each, because a run without reports proves nothing if the
// sanitizer does not work. All of them involve the thread of an engine.
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

// The members are in different cache lines. ThreadSanitizer remembers four accesses for each eight bytes, and polling
// the flag would replace the accesses to the cell.
struct Racing {
  alignas(64) uint32_t cell = 0;
  alignas(64) std::atomic<bool> started{false};
};

// A data race: the host writes memory that a running kernel writes. The flag shows that the kernel runs, and orders
// nothing, because its accesses are relaxed.
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

// A data race: the host writes memory that a callback writes, before it has called orUnsubscribe().
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

// An observer ignores one call of `complete`. The program's own check must find that.
inline void plant_forgotten() {
  Watcher(1).round(true);
}

// A kernel writes one element past the end of host memory.
inline void plant_overflow() {
  std::vector<uint32_t> cells(8);
  CHECK(launch(nullptr, add_kernel, {cells.data(), cells.size() + 1, 1}));
  CHECK(orDeviceSynchronize() == orSuccess);
}

// A kernel has undefined behavior: signed overflow.
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

// A memory leak: a kernel allocates memory that is never released. A kernel's state that is not released would not be
// reported, because the queue still holds its address.
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

// Makes the mistake `name`. Returns false if there is none with this name.
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
