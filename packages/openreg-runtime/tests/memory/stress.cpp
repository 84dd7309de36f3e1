// SPDX-License-Identifier: BSD-3-Clause
// The runtime's memory without PyTorch and without the driver: checks of each part, then many threads that use all of
// it at once and check every byte; meant to run under a sanitizer.
//
//   memory_stress SECONDS [SEED]     exit status 0: all checks held, and all was right
//   memory_stress plant FAULT        does one thing wrong (planted.h); under a sanitizer it must not end well
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include "checks.h"
#include "fake_device.h"
#include "planted.h"

namespace memory_test {
namespace {

using Random = std::mt19937_64;

std::atomic<bool> stop{false};
std::atomic<uint64_t> allocations{0};
std::atomic<uint64_t> launches{0};

size_t pick(Random& random, size_t count) {
  return static_cast<size_t>(random() % count);
}

// What one thread holds: every byte has the thread's number.
struct Held {
  char* address;
  size_t size;
  unsigned char tag;

  void fill() const { std::memset(address, tag, size); }
  void check() const {
    CHECK(static_cast<unsigned char>(address[0]) == tag && static_cast<unsigned char>(address[size - 1]) == tag);
  }
};

void allocate_until_stopped(runtime::DeviceCachingAllocator& cache, uint64_t seed) {
  constexpr size_t kMost = 40;
  Random random(seed);
  std::vector<Held> held;
  const auto tag = static_cast<unsigned char>(seed % 250 + 1);
  const auto give_back = [&](size_t i) {
    held[i].check();
    if (pick(random, 4) == 0) {
      cache.record_stream(held[i].address, {static_cast<int>(pick(random, 2)), static_cast<int64_t>(pick(random, 4))});
    }
    CHECK(cache.release(held[i].address));
    held[i] = held.back();
    held.pop_back();
  };
  while (!stop) {
    if (held.size() < kMost && pick(random, 2) == 0) {
      const size_t size = 1 + pick(random, pick(random, 8) == 0 ? 3 * kMiB : 20'000);
      char* address = allocate(cache, size, static_cast<int64_t>(pick(random, 3)));
      if (address != nullptr) {
        held.push_back({address, size, tag});
        held.back().fill();
        ++allocations;
      }
    } else if (!held.empty()) {
      give_back(pick(random, held.size()));
    }
  }
  while (!held.empty()) {
    give_back(held.size() - 1);
  }
}

// Empties, looks, lets work end, captures, all at random.
void disturb_until_stopped(runtime::DeviceCachingAllocator& cache, FakeDevice& device, uint64_t seed) {
  Random random(seed);
  uint64_t number = 0;
  while (!stop) {
    const runtime::PoolId pool{++number, 0};
    switch (pick(random, 5)) {
      case 0:
        cache.empty();
        break;
      case 1:
        check_segments(cache);
        break;
      case 2:
        cache.begin_pool_filter({pool, [](int64_t stream) { return stream == 1; }, pick(random, 2) == 0});
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        CHECK(cache.end_pool_filter(pool) && cache.release_pool(pool));
        break;
      default:
        device.finish_work();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

// Every address that was handed out comes back once, and is free only then.
struct Lifetimes {
  std::unordered_map<void*, bool> released;  // of allocated blocks: whether they are on their way back
  bool ended = false;

  void note(const runtime::MemoryEvent& event) {
    CHECK(!ended);
    using Kind = runtime::MemoryEventKind;
    if (event.kind == Kind::kAllocated) {
      CHECK(released.emplace(event.address, false).second);
    } else if (event.kind == Kind::kFreeRequested) {
      const auto found = released.find(event.address);
      CHECK(found != released.end() && !found->second);
      found->second = true;
    } else if (event.kind == Kind::kFreeCompleted) {
      const auto found = released.find(event.address);
      CHECK(found != released.end() && found->second);
      released.erase(found);
    }
  }
};

// MemoryObserverList that come and go; nothing reaches one that has gone.
void observe_until_stopped(runtime::DeviceCachingAllocator& cache, uint64_t seed) {
  Random random(seed);
  uint64_t id = seed << 32;
  while (!stop) {
    auto seen = std::make_unique<uint64_t>(0);
    cache.add_observer(++id, runtime::kAllMemoryEvents, [&seen](const runtime::MemoryEvent&) { ++*seen; });
    std::this_thread::sleep_for(std::chrono::microseconds(pick(random, 3000)));
    CHECK(cache.remove_observer(id) == "" && !cache.remove_observer(id));
    seen.reset();
  }
}

// One thread writes launch memory, the other one reads and releases it, as host and engine do.
void launch_until_stopped(uint64_t seed) {
  constexpr size_t kSlots = 64;
  struct Message {
    uint64_t number;
    size_t size;
  };
  std::array<std::atomic<Message*>, kSlots> slots{};
  std::atomic<bool> done{false};
  std::thread engine([&] {
    for (size_t i = 0; !done || slots[i % kSlots] != nullptr; ++i) {
      Message* message = slots[i % kSlots].exchange(nullptr);
      if (message == nullptr) {
        std::this_thread::yield();
        --i;
        continue;
      }
      CHECK(message->number == i);
      runtime::release_launch_memory(message, message->size);
    }
  });
  Random random(seed);
  uint64_t number = 0;
  while (!stop) {
    const size_t size = sizeof(Message) + pick(random, 1200);
    auto* message = static_cast<Message*>(runtime::allocate_launch_memory(size));
    *message = {number, size};
    while (slots[number % kSlots] != nullptr) {
      std::this_thread::yield();
    }
    slots[number % kSlots] = message;
    ++number;
  }
  done = true;
  engine.join();
  launches += number;
}

void import_until_stopped(runtime::ImportCache& imports, uint64_t seed) {
  Random random(seed);
  std::vector<std::shared_ptr<runtime::Import>> held;
  while (!stop) {
    if (held.size() < 4) {
      orIpcMemHandle_t handle{};
      handle.reserved[0] = static_cast<char>(pick(random, 4));
      held.push_back(imports.open(static_cast<int>(pick(random, 2)), handle));
      CHECK(*held.back()->address() == handle.reserved[0]);
    } else {
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(pick(random, held.size())));
    }
  }
}

void run(double seconds, uint64_t seed) {
  FakeDevice device(96 * kMiB);
  runtime::DeviceCachingAllocator cache(0, device);
  std::atomic<int> mapped{0};
  runtime::ImportCache imports(
      [&](int, const orIpcMemHandle_t& handle) {
        ++mapped;
        return new char(handle.reserved[0]);
      },
      [&](char* address) {
        delete address;
        --mapped;
      });
  Lifetimes lifetimes;
  const uint64_t kLifetimes = 1;
  cache.add_observer(kLifetimes, runtime::kAllMemoryEvents,
                     [&](const runtime::MemoryEvent& event) { lifetimes.note(event); });
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back(allocate_until_stopped, std::ref(cache), seed * 100 + i);
  }
  threads.emplace_back(disturb_until_stopped, std::ref(cache), std::ref(device), seed * 100 + 4);
  for (uint64_t i = 5; i < 7; ++i) {
    threads.emplace_back(observe_until_stopped, std::ref(cache), seed * 100 + i);
    threads.emplace_back(import_until_stopped, std::ref(imports), seed * 100 + i);
    threads.emplace_back(launch_until_stopped, seed * 100 + i);
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(cache.empty());
  check_segments(cache);
  CHECK(device.used() == 0 && lifetimes.released.empty() && mapped == 0);
  CHECK(cache.remove_observer(kLifetimes) == "");
  lifetimes.ended = true;
  CHECK(allocations > 0 && launches > 0);
}

}  // namespace
}  // namespace memory_test

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "plant") == 0) {
    return memory_test::plant(argv[2]) ? 0 : 2;
  }
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  if (seconds <= 0) {
    std::fprintf(stderr, "usage: memory_stress SECONDS [SEED]\n");
    return 2;
  }
  memory_test::check_all();
  memory_test::run(seconds, seed);
  std::printf("%llu allocations, %llu launches, seed %llu\n",
              static_cast<unsigned long long>(memory_test::allocations.load()),
              static_cast<unsigned long long>(memory_test::launches.load()), static_cast<unsigned long long>(seed));
  return 0;
}
