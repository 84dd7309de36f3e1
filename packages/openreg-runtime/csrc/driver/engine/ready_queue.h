// SPDX-License-Identifier: BSD-3-Clause
// The streams whose heads may run on an engine.
#pragma once

#include <array>
#include <cstddef>
#include <deque>

#include "objects/stream.h"
#include "time/seeded_order.h"

namespace openreg::driver {

// By priority, then in the order in which they became ready, or as a seed says. A stream is in it once at most. Guarded
// by the scheduler's mutex.
class ReadyQueue {
 public:
  void push(Stream& stream) { level_of(stream).push_back(&stream); }

  // The stream that has waited longest among those of the highest priority; null when there is none.
  Stream* pop() {
    for (Level& level : levels_) {
      if (!level.empty()) {
        Stream* stream = level.front();
        level.pop_front();
        return stream;
      }
    }
    return nullptr;
  }

  // All of them, by priority, then in order.
  template <class Call>
  void for_each(Call&& call) const {
    for (const Level& level : levels_) {
      for (Stream* stream : level) {
        call(*stream);
      }
    }
  }
  void remove(Stream& stream) { std::erase(level_of(stream), &stream); }

  // One among those of the highest priority, as the order chooses, which is asked only when there is one.
  Stream* pop(SeededOrder& order) {
    for (Level& level : levels_) {
      if (!level.empty()) {
        const auto chosen = level.begin() + static_cast<std::ptrdiff_t>(order.choose(level.size()));
        Stream* stream = *chosen;
        level.erase(chosen);
        return stream;
      }
    }
    return nullptr;
  }

 private:
  using Level = std::deque<Stream*>;

  Level& level_of(const Stream& stream) { return levels_[static_cast<size_t>(stream.priority - kGreatestPriority)]; }

  std::array<Level, kLeastPriority - kGreatestPriority + 1> levels_;  // highest first
};

}  // namespace openreg::driver
