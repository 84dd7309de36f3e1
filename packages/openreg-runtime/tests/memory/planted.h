// SPDX-License-Identifier: BSD-3-Clause
// Mistakes made on purpose, one for each part of the memory code and each kind that a sanitizer must find.
// run_stress.py requires a report of each, because a run without reports proves nothing if the sanitizer does not work.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>

#include "cache/free_blocks.h"
#include "fake_device.h"
#include "openreg/runtime/launch_memory.h"

namespace memory_test {

// Runs both at once; the flag makes sure of it and orders nothing.
template <class First, class Second>
void race(First first, Second second) {
  std::atomic<bool> started{false};
  std::thread other([&] {
    started.store(true, std::memory_order_relaxed);
    first();
  });
  while (!started.load(std::memory_order_relaxed)) {
  }
  second();
  other.join();
}

// Statistics that are read without the cache's lock.
inline void plant_race_in_the_cache() {
  FakeDevice device(8 * kMiB);
  runtime::DeviceCachingAllocator cache(0, device);
  runtime::Statistics* leaked = nullptr;
  cache.inspect([&](const auto&, runtime::Statistics& statistics) { leaked = &statistics; });
  race([&] { cache.release(allocate(cache, 1000)); }, [&] { leaked->reset_peak(); });
}

// Free blocks have no lock of their own.
inline void plant_race_in_the_free_blocks() {
  runtime::Block blocks[2];
  runtime::FreeBlocks free;
  blocks[1].size = 1;
  race([&] { free.insert(blocks[0]); }, [&] { free.insert(blocks[1]); });
}

// Launch memory that is written after it was released.
inline void plant_race_in_launch_memory() {
  auto* memory = static_cast<int64_t*>(runtime::allocate_launch_memory(100));
  race(
      [&] {
        runtime::release_launch_memory(memory, 100);
        runtime::allocate_launch_memory(100);
      },
      [&] { *memory = 1; });
}

// A tensor that outlives its segment.
inline void plant_use_after_release() {
  FakeDevice device(8 * kMiB);
  runtime::DeviceCachingAllocator cache(0, device);
  char* address = allocate(cache, 1000);
  cache.release(address);
  cache.empty();
  *address = 1;
}

inline void plant_overflow_of_launch_memory() {
  auto* memory = static_cast<char*>(runtime::allocate_launch_memory(640));
  memory[640] = 1;
}

inline void plant_leak_of_launch_memory() {
  for (int i = 0; i < 10; ++i) {  // the address of the last may still lie somewhere
    std::memset(runtime::allocate_launch_memory(100'000), 1, 100'000);
  }
}

inline void plant_overflow_of_a_counter() {
  runtime::Counter counter;
  counter.increase(std::numeric_limits<int64_t>::max());
  counter.increase(1);
}

// False when there is no such fault.
inline bool plant(const char* name) {
  struct Fault {
    const char* name;
    void (*run)();
  };
  constexpr Fault kFaults[] = {{"race_in_the_cache", plant_race_in_the_cache},
                               {"race_in_the_free_blocks", plant_race_in_the_free_blocks},
                               {"race_in_launch_memory", plant_race_in_launch_memory},
                               {"use_after_release", plant_use_after_release},
                               {"overflow_of_launch_memory", plant_overflow_of_launch_memory},
                               {"leak_of_launch_memory", plant_leak_of_launch_memory},
                               {"overflow_of_a_counter", plant_overflow_of_a_counter}};
  for (const Fault& fault : kFaults) {
    if (std::strcmp(name, fault.name) == 0) {
      fault.run();
      return true;
    }
  }
  return false;
}

}  // namespace memory_test
