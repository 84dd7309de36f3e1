// SPDX-License-Identifier: BSD-3-Clause
// This part of the stress program checks that each host function runs once, in the order of its stream, after the
// kernel before it.
#pragma once

#include <array>
#include <cstdint>

#include "openreg.h"
#include "stress_common.h"

namespace stress {

// Counters that the functions of one stream share. They have no lock, because the order of the stream protects them.
struct Turn {
  uint32_t kernels = 0;
  uint32_t functions = 0;
};

inline orError_t take_kernel_turn(void* state, char*, size_t) {
  ++static_cast<Turn*>(state)->kernels;
  return orSuccess;
}

inline void take_function_turn(void* state) {
  auto* turn = static_cast<Turn*>(state);
  CHECK(++turn->functions == turn->kernels);
}

inline void call_host_functions_until_stopped(uint64_t seed) {
  constexpr size_t kTurns = 4;
  Random random(seed);
  std::array<Turn, kTurns> turns{};
  std::array<orStream_t, kTurns> streams{};
  std::array<uint32_t, kTurns> expected{};
  for (size_t i = 0; i < kTurns; ++i) {
    CHECK(orSetDevice(static_cast<int>(i % kWorkDevices)) == orSuccess);
    CHECK(orStreamCreate(&streams[i]) == orSuccess);
  }
  while (!stop) {
    const size_t i = pick(random, kTurns);
    const orKernel kernel{"turn", &take_kernel_turn, &turns[i], nullptr};
    CHECK(orLaunchKernel(streams[i], &kernel) == orSuccess);
    CHECK(orLaunchHostFunc(streams[i], &take_function_turn, &turns[i]) == orSuccess);
    ++expected[i];
    if (pick(random, 50) == 0) {
      CHECK(orStreamSynchronize(streams[i]) == orSuccess);
      CHECK(turns[i].functions == expected[i]);
      pause_milliseconds(pick(random, 10));  // so that other threads can use the engine
    }
  }
  for (size_t i = 0; i < kTurns; ++i) {
    CHECK(orStreamSynchronize(streams[i]) == orSuccess);
    CHECK(turns[i].functions == expected[i]);
    CHECK(orStreamDestroy(streams[i]) == orSuccess);
  }
}

}  // namespace stress
