// SPDX-License-Identifier: BSD-3-Clause
// Many threads use all of the device at once and check every byte; meant to run under a sanitizer.
//
//   stress SECONDS [SEED]     exit status 0: all data was right, everything was released once
//
// Three kinds of threads, all deciding by seeded random numbers:
//   worker     owns buffers, and moves data between them through random streams, ordered by events
//   alone; crowd      several threads launch on one stream while another one keeps destroying and
//   remaking it; breaker    lets kernels of its own device fail, and resets it.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "openreg.h"
#include "stress_common.h"
#include "stress_worker.h"

namespace stress {
namespace {

constexpr int kWorkers = 4;
constexpr int kCrowd = 2;
constexpr int kBrokenDevice = 2;

// A stream that is destroyed under the threads that use it, full at times.
class Crowd {
 public:
  Crowd() {
    orStream_t first = nullptr;
    CHECK(orStreamCreate(&first) == orSuccess);
    stream_ = first;
  }
  ~Crowd() { CHECK(orStreamDestroy(stream_) == orSuccess); }

  void launch_until_stopped() {
    uint32_t cell = 0;
    uint64_t accepted = 0;
    while (!stop) {
      // More than a stream holds; then the workers get their share of the engine.
      for (int i = 0; i < 20000 && !stop; ++i) {
        accepted += launch(stream_, add_kernel, {&cell, 0, 1}) ? 1 : 0;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    CHECK(accepted > 0);
  }

  void destroy_until_stopped(uint64_t seed) {
    Random random(seed);
    while (!stop) {
      // Pauses fill the queue: the launches behind them soon block.
      CHECK(orStreamDelay(stream_, 1'000'000 * (random() % 20)) == orSuccess);
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 20));
      orStream_t next = nullptr;
      CHECK(orStreamCreate(&next) == orSuccess);
      CHECK(orStreamDestroy(stream_.exchange(next)) == orSuccess);
    }
  }

 private:
  std::atomic<orStream_t> stream_{nullptr};
};

void break_and_reset(uint64_t seed) {
  Random random(seed);
  CHECK(orSetDevice(kBrokenDevice) == orSuccess);
  orStream_t streams[3];
  for (orStream_t& stream : streams) {
    CHECK(orStreamCreate(&stream) == orSuccess);
  }
  while (!stop) {
    for (int i = 0; i < 50; ++i) {
      launch(streams[pick(random, 3)], pick(random, 20) == 0 ? failing_kernel : add_kernel, {nullptr, 0, 0});
    }
    const orError_t code = orDeviceSynchronize();
    CHECK(code == orSuccess || code == orErrorLaunchFailure);
    CHECK(orDeviceGetError(kBrokenDevice) == code);
    CHECK(orDeviceReset() == orSuccess);
    CHECK(orDeviceSynchronize() == orSuccess);
  }
  for (orStream_t stream : streams) {
    CHECK(orStreamDestroy(stream) == orSuccess);
  }
}

void run(double seconds, uint64_t seed) {
  const SharedEvents shared;
  Crowd crowd;
  std::vector<std::thread> threads;
  for (int i = 0; i < kWorkers; ++i) {
    threads.emplace_back([&shared, seed, i] { Worker(seed * 100 + static_cast<uint64_t>(i), shared).run(); });
  }
  for (int i = 0; i < kCrowd; ++i) {
    threads.emplace_back([&crowd] { crowd.launch_until_stopped(); });
  }
  threads.emplace_back([&crowd, seed] { crowd.destroy_until_stopped(seed + 1); });
  threads.emplace_back([seed] { break_and_reset(seed + 2); });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (int device = 0; device < 3; ++device) {
    CHECK(orSetDevice(device) == orSuccess);
    CHECK(orDeviceSynchronize() == orSuccess);
    orDeviceStats stats{};
    CHECK(orDeviceGetStats(&stats, device) == orSuccess);
    CHECK(stats.allocated_bytes == 0);
  }
  CHECK(launched == released);
  CHECK(launched > 0);
  CHECK(checked_bytes > 0);
}

}  // namespace
}  // namespace stress

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  int count = 0;
  CHECK(orGetDeviceCount(&count) == orSuccess);
  if (count < 3 || seconds <= 0) {
    std::fprintf(stderr, "usage: OPENREG_DEVICE_COUNT=3 stress SECONDS [SEED]\n");
    return 2;
  }
  stress::run(seconds, seed);
  std::printf("%llu launches, %llu MiB checked, seed %llu\n", static_cast<unsigned long long>(stress::launched.load()),
              static_cast<unsigned long long>(stress::checked_bytes.load() >> 20),
              static_cast<unsigned long long>(seed));
  return 0;
}
