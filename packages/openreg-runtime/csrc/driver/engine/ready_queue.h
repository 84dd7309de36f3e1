// SPDX-License-Identifier: BSD-3-Clause
// ReadyQueue holds the streams that are ready: those whose head (oldest incomplete task) an engine can execute now.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>

#include "objects/stream.h"
#include "time/seeded_order.h"

namespace openreg::driver {

// A priority queue of streams. Among streams of equal priority, pop() selects the one that became ready first, or the
// random generator of a seeded schedule (OPENREG_SCHEDULE_SEED) selects one. Contains each stream at most once. Guarded
// by the scheduler's mutex.
class ReadyQueue {
 public:
  // Adds a stream, which the queue must not contain.
  void push(Stream& stream) { level_of(stream).push_back(&stream); }

  // Removes and returns the stream that was ready first among those of the highest priority. Null if there is none.
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

  // Calls `call` for all streams, by priority, then in the order in which they became ready.
  template <class Call>
  void for_each(Call&& call) const {
    for (const Level& level : levels_) {
      for (Stream* stream : level) {
        call(*stream);
      }
    }
  }
  bool empty() const {
    return std::all_of(levels_.begin(), levels_.end(), [](const Level& level) { return level.empty(); });
  }
  // Removes a stream, if the queue contains it.
  void remove(Stream& stream) { std::erase(level_of(stream), &stream); }

  // Same as pop() without an argument, except that `order` selects one of the streams of the highest priority. If the
  // queue is empty, makes no random choice.
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

  std::array<Level, kLeastPriority - kGreatestPriority + 1> levels_;  // highest priority first
};

}  // namespace openreg::driver
