// SPDX-License-Identifier: BSD-3-Clause
#include "random/graph_random_state.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "openreg/runtime/launch.h"

namespace openreg::runtime {

namespace {

// The random states of the captures that have not ended, by the driver's ids of the captures.
struct GraphRandomRegistry {
  std::mutex mutex;
  std::unordered_map<uint64_t, std::shared_ptr<GraphRandomState>> by_id;
};

GraphRandomRegistry& captures() {
  static auto* const running = new GraphRandomRegistry();  // outlives every thread
  return *running;
}

}  // namespace

PhiloxState GraphRandomState::reserve(Generator& generator, uint64_t count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto found = std::find_if(sources_.begin(), sources_.end(),
                            [&](const Source& source) { return source.generator.get() == &generator; });
  if (found == sources_.end()) {
    sources_.push_back({c10::intrusive_ptr<Generator>::reclaim_copy(&generator),
                        std::make_shared<ReplayPhiloxState>(ReplayPhiloxState{0, 0}), 0});
    found = std::prev(sources_.end());
  }
  const uint64_t offset = found->count;
  found->count += count;
  return {found->replay, offset};
}

void GraphRandomState::begin_replay(c10::Stream stream) {
  std::vector<Source> sources;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    sources = sources_;
  }
  for (const Source& source : sources) {  // without the lock, because a launch may block
    const PhiloxState start = source.generator->reserve(source.count);
    const auto write = [replay = source.replay, seed = start.seed(), offset = start.offset()] {
      *replay = {seed, offset};
    };
    const Operands none;  // the state is internal, so it is no operand for observers
    launch("graph random state", stream, write, &none);
  }
}

bool GraphRandomState::empty() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return sources_.empty();
}

void add_capture_random(uint64_t id, std::shared_ptr<GraphRandomState> random) {
  const std::lock_guard<std::mutex> lock(captures().mutex);
  captures().by_id.emplace(id, std::move(random));
}

void remove_capture_random(uint64_t id) {
  const std::lock_guard<std::mutex> lock(captures().mutex);
  captures().by_id.erase(id);
}

std::shared_ptr<GraphRandomState> find_capture_random(uint64_t id) {
  const std::lock_guard<std::mutex> lock(captures().mutex);
  const auto found = captures().by_id.find(id);
  TORCH_CHECK(found != captures().by_id.end(),
              "random numbers cannot be captured by a capture that was begun with orStreamBeginCapture(), because "
              "its replays would not advance the generator; capture with torch.accelerator.Graph");
  return found->second;
}

}  // namespace openreg::runtime
