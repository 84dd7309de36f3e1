// SPDX-License-Identifier: BSD-3-Clause
// In this part of the stress program, streams wait for values that another thread signals. It checks that each wait
// ends once, and not before its value was signaled.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include "openreg.h"
#include "stress_common.h"

namespace stress {

// The state that all threads and kernels of one round share.
struct SemaphoreRound {
  orSemaphore_t semaphore = nullptr;
  std::atomic<uint64_t> announced{0};  // the newest value that may have been signaled
};

// The state of a kernel after a wait. Each stream has its own counter `ended`, which therefore needs no lock.
struct SemaphoreTurn {
  SemaphoreRound* round;
  uint64_t* ended;
  uint64_t value;
};

inline orError_t end_wait(void* state, char*, size_t) {
  const auto* turn = static_cast<SemaphoreTurn*>(state);
  CHECK(turn->round->announced >= turn->value);
  ++*turn->ended;
  return orSuccess;
}

inline void wait_then_count(orStream_t stream, const SemaphoreTurn& turn) {
  CHECK(orStreamWaitSemaphore(stream, turn.round->semaphore, turn.value) == orSuccess);
  const orKernel kernel{"wait", &end_wait, new SemaphoreTurn(turn),
                        [](void* state) { delete static_cast<SemaphoreTurn*>(state); }};
  CHECK(orLaunchKernel(stream, &kernel) == orSuccess);
}

inline void signal_all(SemaphoreRound& round, uint64_t last, uint64_t seed) {
  Random random(seed);
  while (round.announced < last) {
    const uint64_t value = std::min<uint64_t>(round.announced + 1 + pick(random, 5), last);
    round.announced = value;
    CHECK(orSemaphoreSignal(round.semaphore, value) == orSuccess);
    if (pick(random, 20) == 0) {
      std::this_thread::yield();
    }
  }
}

inline void wait_for_semaphores_until_stopped(uint64_t seed) {
  constexpr size_t kStreamsOfWaits = 4;
  Random random(seed);
  std::array<orStream_t, kStreamsOfWaits> streams{};
  for (size_t i = 0; i < kStreamsOfWaits; ++i) {
    CHECK(orSetDevice(static_cast<int>(i % kWorkDevices)) == orSuccess);
    CHECK(orStreamCreate(&streams[i]) == orSuccess);
  }
  while (!stop) {
    SemaphoreRound round;
    std::array<uint64_t, kStreamsOfWaits> ended{};
    const uint64_t waits = 1 + pick(random, 100);
    CHECK(orSemaphoreCreate(&round.semaphore, 0) == orSuccess);
    std::thread signaler([&, last = waits, seed_of_round = random()] { signal_all(round, last, seed_of_round); });
    for (uint64_t value = 1; value <= waits; ++value) {
      const size_t i = pick(random, kStreamsOfWaits);
      wait_then_count(streams[i], {&round, &ended[i], value});
    }
    for (orStream_t stream : streams) {
      CHECK(orStreamSynchronize(stream) == orSuccess);
    }
    signaler.join();
    CHECK(ended[0] + ended[1] + ended[2] + ended[3] == waits);
    CHECK(orSemaphoreDestroy(round.semaphore) == orSuccess);
    pause_milliseconds(pick(random, 5));  // so that other threads can use the engine
  }
  for (orStream_t stream : streams) {
    CHECK(orStreamDestroy(stream) == orSuccess);
  }
}

// Waits for a semaphore on a device that may have failed. The thread must not block forever, whether the semaphore is
// signaled or fails.
inline void wait_on_a_broken_device(orStream_t stream, Random& random) {
  orSemaphore_t semaphore = nullptr;
  CHECK(orSemaphoreCreate(&semaphore, 0) == orSuccess);
  const orError_t code = orStreamWaitSemaphore(stream, semaphore, 1);
  CHECK(code == orSuccess || code == orErrorLaunchFailure);
  CHECK((pick(random, 2) == 0 ? orSemaphoreFail(semaphore, orErrorUnknown, "on purpose")
                              : orSemaphoreSignal(semaphore, 1)) == orSuccess);
  const orError_t waited = orStreamSynchronize(stream);
  CHECK(waited == orSuccess || waited == orErrorLaunchFailure);
  CHECK(orSemaphoreDestroy(semaphore) == orSuccess);
}

}  // namespace stress
