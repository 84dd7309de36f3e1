// SPDX-License-Identifier: BSD-3-Clause
// The random numbers of captured kernels, which must differ in each replay (source: ATen registers a CUDAGeneratorState
// with each CUDA graph).
#pragma once

#include <c10/core/Stream.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "openreg/runtime/generator.h"

namespace openreg::runtime {

// The generators that the kernels of one graph use. A captured kernel stores only the offset of its numbers from
// those at which a replay starts. It reads the start from a ReplayPhiloxState, of which the graph has one per
// generator, and which begin_replay() sets. Every replay thus draws new numbers and follows seeds that are set between
// replays. Thread-safe.
class GraphRandomState {
 public:
  // Reserves `count` steps in every replay, and returns where they start. Keeps the generator alive as long as this
  // object.
  PhiloxState reserve(Generator& generator, uint64_t count);
  // Reserves the steps of one replay from each generator, and enqueues kernels that set the replay states. The caller
  // then enqueues the replay on the same stream. Blocks while the stream's queue is full, and releases the GIL while it
  // blocks.
  void begin_replay(c10::Stream stream);
  // Returns true if no kernel of the graph draws random numbers.
  bool empty() const;

 private:
  // A generator and the steps that a replay draws from it.
  struct Source {
    c10::intrusive_ptr<Generator> generator;
    std::shared_ptr<ReplayPhiloxState> replay;
    uint64_t count;
  };
  mutable std::mutex mutex_;
  std::vector<Source> sources_;
};

// Registers the random state of a capture that has begun, by the driver's id of the capture. Thread-safe.
void add_capture_random(uint64_t id, std::shared_ptr<GraphRandomState> random);
// Unregisters the random state of a capture that has ended. Thread-safe.
void remove_capture_random(uint64_t id);
// Returns the random state of a capture. Throws c10::Error if torch.accelerator.Graph did not begin it. Thread-safe.
std::shared_ptr<GraphRandomState> find_capture_random(uint64_t id);

}  // namespace openreg::runtime
