// SPDX-License-Identifier: BSD-3-Clause
// This part of the stress program captures kernels of two streams, replays the graph, and destroys it, also while it is
// executed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "openreg.h"
#include "stress_common.h"

namespace stress {

class Replayer {
 public:
  explicit Replayer(uint64_t seed) : random_(seed) {
    CHECK(orSetDevice(static_cast<int>(seed % kWorkDevices)) == orSuccess);
    CHECK(orStreamCreate(&first_) == orSuccess);
    CHECK(orStreamCreate(&second_) == orSuccess);
    CHECK(orEventCreate(&fork_) == orSuccess);
    CHECK(orEventCreate(&join_) == orSuccess);
  }
  ~Replayer() {
    CHECK(orStreamDestroy(first_) == orSuccess);
    CHECK(orStreamDestroy(second_) == orSuccess);
    CHECK(orEventDestroy(fork_) == orSuccess);
    CHECK(orEventDestroy(join_) == orSuccess);
  }

  // Each replay adds 2 to the first cell and 1 to the second, in kernels that only the graph orders.
  void round() {
    cells_ = {};
    const orGraph_t graph = capture();
    const auto replays = static_cast<uint32_t>(pick(random_, 20));
    for (uint32_t i = 0; i < replays; ++i) {
      CHECK(orGraphLaunch(graph, first_) == orSuccess);
    }
    const bool destroy_early = pick(random_, 2) == 0;
    if (destroy_early) {
      CHECK(orGraphDestroy(graph) == orSuccess);
    }
    CHECK(orStreamSynchronize(first_) == orSuccess);
    CHECK(cells_[0] == replays * 2 && cells_[1] == replays);
    if (!destroy_early) {
      CHECK(orGraphDestroy(graph) == orSuccess);
    }
  }

 private:
  orGraph_t capture() {
    // Relaxed mode, because other threads continue with calls that block on the device.
    CHECK(orStreamBeginCapture(first_, orStreamCaptureModeRelaxed) == orSuccess);
    CHECK(launch(first_, add_kernel, {&cells_[0], 1, 1}));
    CHECK(orEventRecord(fork_, first_) == orSuccess);
    CHECK(orStreamWaitEvent(second_, fork_, 0) == orSuccess);
    CHECK(launch(second_, add_kernel, {&cells_[1], 1, 1}));
    CHECK(orEventRecord(join_, second_) == orSuccess);
    CHECK(orStreamWaitEvent(first_, join_, 0) == orSuccess);
    CHECK(launch(first_, add_kernel, {&cells_[0], 1, 1}));
    orGraph_t graph = nullptr;
    CHECK(orStreamEndCapture(first_, &graph) == orSuccess);
    size_t count = 0;
    CHECK(orGraphGetNodeCount(graph, &count) == orSuccess);
    CHECK(count >= 3);
    CHECK(cells_[0] == 0 && cells_[1] == 0);  // the kernels were recorded, not executed
    return graph;
  }

  Random random_;
  std::array<uint32_t, 2> cells_{};
  orStream_t first_ = nullptr;
  orStream_t second_ = nullptr;
  orEvent_t fork_ = nullptr;
  orEvent_t join_ = nullptr;
};

inline void replay_until_stopped(uint64_t seed) {
  Replayer replayer(seed);
  while (!stop) {
    replayer.round();
  }
}

}  // namespace stress
