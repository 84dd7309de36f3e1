// SPDX-License-Identifier: BSD-3-Clause
// This program uses all functions of the device from many threads at once and checks every byte that it copies. It is
// meant to run under a sanitizer.
//
//   stress SECONDS [SEED]     exit status 0 if all data was correct and each launch was released once
//   stress plant FAULT        makes one mistake (stress_planted.h), which a sanitizer or the program must report
//
// Each part of the program is a function in a header, which takes a seed and runs until `stop` is true. A new part is a
// line in kParts.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "openreg.h"
#include "stress_breaker.h"
#include "stress_common.h"
#include "stress_crowd.h"
#include "stress_graph.h"
#include "stress_host.h"
#include "stress_loss.h"
#include "stress_observer.h"
#include "stress_planted.h"
#include "stress_semaphore.h"
#include "stress_subscriber.h"
#include "stress_time.h"
#include "stress_worker.h"

namespace stress {
namespace {

struct Part {
  int threads;
  void (*run)(uint64_t seed);
};

constexpr Part kParts[] = {
    {4, work_until_stopped},
    {1, crowd_until_stopped},
    {1, break_and_reset},
    {1, observe_until_stopped},
    {1, call_host_functions_until_stopped},
    {2, replay_until_stopped},
    {2, wait_for_semaphores_until_stopped},
    {2, watch_until_stopped},
    {1, keep_time_until_stopped},
    {1, lose_then_ask_until_stopped},
};

void run(double seconds, uint64_t seed) {
  std::vector<std::thread> threads;
  for (const Part& part : kParts) {
    for (int i = 0; i < part.threads; ++i) {
      threads.emplace_back(part.run, seed * 100 + threads.size());
    }
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (int device = 0; device < kDevices; ++device) {
    CHECK(orSetDevice(device) == orSuccess);
    CHECK(orDeviceSynchronize() == (device == kLostDevice ? orErrorDeviceLost : orSuccess));
    orDeviceStats stats{};
    CHECK(orDeviceGetStats(&stats, device) == orSuccess);
    CHECK(stats.allocated_bytes == 0);
  }
  CHECK(launched == released);
  CHECK(launched > 0);
  CHECK(checked_bytes > 0);
  CHECK(Watcher::observed > 0);
}

}  // namespace
}  // namespace stress

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "plant") == 0) {
    return stress::plant(argv[2]) ? 0 : 2;
  }
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  int count = 0;
  CHECK(orGetDeviceCount(&count) == orSuccess);
  if (count < stress::kDevices || seconds <= 0) {
    std::fprintf(stderr, "usage: OPENREG_DEVICE_COUNT=%d stress SECONDS [SEED]\n", stress::kDevices);
    return 2;
  }
  stress::run(seconds, seed);
  std::printf("%llu launches, %llu observed, %llu MiB checked, seed %llu\n",
              static_cast<unsigned long long>(stress::launched.load()),
              static_cast<unsigned long long>(stress::Watcher::observed.load()),
              static_cast<unsigned long long>(stress::checked_bytes.load() >> 20),
              static_cast<unsigned long long>(seed));
  return 0;
}
