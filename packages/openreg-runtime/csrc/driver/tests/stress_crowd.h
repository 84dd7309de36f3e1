// SPDX-License-Identifier: BSD-3-Clause
// This part of the stress program launches on a stream that another thread destroys and creates again and again.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "openreg.h"
#include "stress_common.h"

namespace stress {

// A stream that is destroyed while other threads use it. Its queue is full at times.
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
      // Enqueues more tasks than a stream holds, then pauses, so that other threads can use the engine.
      for (int i = 0; i < 20000 && !stop; ++i) {
        accepted += launch(stream_, add_kernel, {&cell, 0, 1}) ? 1 : 0;
      }
      pause_milliseconds(500);
    }
    CHECK(accepted > 0);
  }

  void destroy_until_stopped(uint64_t seed) {
    Random random(seed);
    while (!stop) {
      // The queue fills up during the delay, so that launches soon block.
      CHECK(orStreamDelay(stream_, 1'000'000 * (random() % 20)) == orSuccess);
      pause_milliseconds(random() % 20);
      orStream_t next = nullptr;
      CHECK(orStreamCreate(&next) == orSuccess);
      CHECK(orStreamDestroy(stream_.exchange(next)) == orSuccess);
    }
  }

 private:
  std::atomic<orStream_t> stream_{nullptr};
};

inline void crowd_until_stopped(uint64_t seed) {
  Crowd crowd;
  std::thread first([&] { crowd.launch_until_stopped(); });
  std::thread second([&] { crowd.launch_until_stopped(); });
  crowd.destroy_until_stopped(seed);
  first.join();
  second.join();
}

}  // namespace stress
