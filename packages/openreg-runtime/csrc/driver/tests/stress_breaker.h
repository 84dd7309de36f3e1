// SPDX-License-Identifier: BSD-3-Clause
// This part of the stress program makes kernels and allocations of device kBrokenDevice fail, some by injected faults,
// and resets the device.
#pragma once

#include <cstdint>
#include <iterator>

#include "openreg.h"
#include "stress_common.h"
#include "stress_semaphore.h"

namespace stress {

inline void arm_a_fault(Random& random) {
  constexpr const char* kFaults[] = {"launch:7@2", "copy:1@2", "alloc:1@2", "launch:1@2,alloc:2@2", ""};
  CHECK(orSetFaults(kFaults[pick(random, std::size(kFaults))]) == orSuccess);
}

inline void allocate_and_fill() {
  void* address = nullptr;
  const orError_t code = orMalloc(&address, 4096);
  CHECK(code == orSuccess || code == orErrorMemoryAllocation);
  if (code == orSuccess) {
    const orError_t filled = orMemsetAsync(address, 1, 4096, nullptr);
    CHECK(filled == orSuccess || filled == orErrorLaunchFailure);
    CHECK(orFree(address) == orSuccess);
  }
}

inline void break_and_reset(uint64_t seed) {
  Random random(seed);
  CHECK(orSetDevice(kBrokenDevice) == orSuccess);
  orStream_t streams[3];
  for (orStream_t& stream : streams) {
    CHECK(orStreamCreate(&stream) == orSuccess);
  }
  while (!stop) {
    arm_a_fault(random);
    allocate_and_fill();
    for (int i = 0; i < 50; ++i) {
      launch(streams[pick(random, 3)], pick(random, 20) == 0 ? failing_kernel : add_kernel, {nullptr, 0, 0});
    }
    wait_on_a_broken_device(streams[pick(random, 3)], random);
    const orError_t code = orDeviceSynchronize();
    CHECK(code == orSuccess || code == orErrorLaunchFailure);
    CHECK(orDeviceGetError(kBrokenDevice) == code);
    CHECK(orDeviceReset() == orSuccess);
    CHECK(orDeviceSynchronize() == orSuccess);
  }
  CHECK(orSetFaults(nullptr) == orSuccess);
  for (orStream_t stream : streams) {
    CHECK(orStreamDestroy(stream) == orSuccess);
  }
}

}  // namespace stress
