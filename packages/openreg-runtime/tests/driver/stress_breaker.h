// SPDX-License-Identifier: BSD-3-Clause
// Lets kernels of a device of its own fail, and resets it.
#pragma once

#include <cstdint>

#include "openreg.h"
#include "stress_common.h"

namespace stress {

inline void break_and_reset(uint64_t seed) {
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

}  // namespace stress
