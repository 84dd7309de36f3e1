// SPDX-License-Identifier: BSD-3-Clause
// Vector clocks: what has happened before a task, per queue (source: Mattern, "Virtual Time and Global States of
// Distributed Systems", 1988).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace openreg::sanitizer {

// For each queue of the driver the newest ticket that has happened before. A queue executes its tasks in order, so this
// one number stands for all earlier tickets. Queues are numbered densely. Not thread-safe.
class VectorClock {
 public:
  // Returns the newest ticket of `queue` that has happened before, or 0.
  uint64_t at(uint32_t queue) const { return queue < tickets_.size() ? tickets_[queue] : 0; }

  // Adds the tasks of `queue` up to `ticket`. Returns true if that changed the clock.
  bool raise(uint32_t queue, uint64_t ticket) {
    if (at(queue) >= ticket) {
      return false;
    }
    if (queue >= tickets_.size()) {
      tickets_.resize(size_t{queue} + 1);
    }
    tickets_[queue] = ticket;
    return true;
  }

  // Adds what has happened before in `other`. Returns true if that changed the clock.
  bool join(const VectorClock& other) {
    if (tickets_.size() < other.tickets_.size()) {
      tickets_.resize(other.tickets_.size());
    }
    bool changed = false;
    for (size_t i = 0; i < other.tickets_.size(); ++i) {
      changed |= tickets_[i] < other.tickets_[i];
      tickets_[i] = std::max(tickets_[i], other.tickets_[i]);
    }
    return changed;
  }

  // Returns true if all that has happened before in this clock has in `other`, too.
  bool is_within(const VectorClock& other) const {
    for (size_t i = 0; i < tickets_.size(); ++i) {
      if (tickets_[i] > other.at(static_cast<uint32_t>(i))) {
        return false;
      }
    }
    return true;
  }

 private:
  std::vector<uint64_t> tickets_;
};

}  // namespace openreg::sanitizer
