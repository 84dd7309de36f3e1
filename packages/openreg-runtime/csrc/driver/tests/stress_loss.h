// SPDX-License-Identifier: BSD-3-Clause
// This part of the stress program loses device kLostDevice while tasks are queued and a stream waits for a semaphore,
// and checks that the device rejects all calls afterwards.
#pragma once

#include <cstdint>

#include "openreg.h"
#include "stress_common.h"

namespace stress {

inline bool is_lost() {
  return orDeviceGetError(kLostDevice) == orErrorDeviceLost;
}

// Half of the launches before the loss are enqueued after a wait for a value that is never signaled.
inline void lose_the_device(Random& random) {
  CHECK(orSetDevice(kLostDevice) == orSuccess);
  orSemaphore_t semaphore = nullptr;
  orStream_t held = nullptr;
  CHECK(orSemaphoreCreate(&semaphore, 0) == orSuccess);
  CHECK(orStreamCreate(&held) == orSuccess);
  CHECK(orStreamWaitSemaphore(held, semaphore, 1) == orSuccess);
  const orKernel kernel{"lost", [](void*, char*, size_t) { return orSuccess; }, nullptr, nullptr};
  while (!is_lost()) {
    CHECK(orSetFaults("lose:5@3") == orSuccess);  // other threads arm faults, too, which replaces this one
    for (int i = 0; i < 20; ++i) {
      const orError_t code = orLaunchKernel(pick(random, 2) == 0 ? held : nullptr, &kernel);
      CHECK(code == orSuccess || code == orErrorDeviceLost);
    }
    pause_milliseconds(1);
  }
  CHECK(orStreamSynchronize(held) == orErrorDeviceLost);
  CHECK(orDeviceReset() == orErrorDeviceLost);
  CHECK(orLaunchKernel(held, &kernel) == orErrorDeviceLost);
  CHECK(orStreamDestroy(held) == orSuccess);
  CHECK(orSemaphoreDestroy(semaphore) == orSuccess);
}

inline void lose_then_ask_until_stopped(uint64_t seed) {
  Random random(seed);
  pause_milliseconds(pick(random, 2000));  // so that other threads run before the loss, too
  lose_the_device(random);
  while (!stop) {
    CHECK(is_lost());
    CHECK(orDeviceSynchronize() == orErrorDeviceLost);
    pause_milliseconds(5);
  }
}

}  // namespace stress
