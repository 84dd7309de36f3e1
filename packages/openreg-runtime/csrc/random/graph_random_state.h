// SPDX-License-Identifier: BSD-3-Clause
// The random numbers of captured kernels.
#pragma once

#include <c10/core/Stream.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "openreg/runtime/generator.h"

namespace openreg::runtime {

// The generators that kernels of one capture draw from. A captured kernel knows only how far its numbers are from the
// start of the replay; where the replay starts is read from a cell, which begin_replay() sets, so that every replay
// draws new numbers and seeding between replays counts. Thread-safe.
class GraphRandomState {
 public:
  // Reserves `count` numbers of 128 bits of every replay.
  PhiloxState reserve(Generator& generator, uint64_t count);
  // Takes from each generator what one replay needs, and enqueues setting its cell.
  void begin_replay(c10::Stream stream);
  bool empty() const;

 private:
  struct Source {
    c10::intrusive_ptr<Generator> generator;
    std::shared_ptr<PhiloxCell> cell;
    uint64_t count;
  };
  mutable std::mutex mutex_;
  std::vector<Source> sources_;
};

// The captures that run, by the driver's number.
void add_capture_random(uint64_t id, std::shared_ptr<GraphRandomState> random);
void remove_capture_random(uint64_t id);
// Throws c10::Error when the capture was not begun by a graph of PyTorch's.
std::shared_ptr<GraphRandomState> find_capture_random(uint64_t id);

}  // namespace openreg::runtime
