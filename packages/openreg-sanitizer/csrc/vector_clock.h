// SPDX-License-Identifier: BSD-3-Clause
// Vector clocks (source: Mattern, "Virtual Time and Global States of Distributed Systems", 1988). The clock of a task,
// of an event or of the host is the set of all tasks that happen before it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace openreg::sanitizer {

// Identifies a task until the process ends. `queue` is the driver's number of a stream. The driver numbers streams
// without gaps; a later stream may reuse the number of a destroyed one, and continues its tickets. A ticket is the
// sequence number of a task in its queue, from 1 on.
struct TaskId {
  uint32_t queue = 0;
  uint64_t ticket = 0;
  bool operator==(const TaskId&) const = default;
};

// A set of tasks. If it contains a task, it contains all earlier tasks of that queue, because a stream executes its
// tasks in order. So one ticket for each queue represents the set. Not thread-safe.
class VectorClock {
 public:
  // Returns true if the set contains the task.
  bool includes(const TaskId& task) const { return task.ticket <= newest(task.queue); }

  // Adds a task and the earlier ones of its queue.
  void add(const TaskId& task) {
    if (includes(task)) {
      return;
    }
    if (task.queue >= tickets_.size()) {
      tickets_.resize(size_t{task.queue} + 1);
    }
    tickets_[task.queue] = task.ticket;
  }

  // Adds all tasks of `other`. Returns true if that changed this set.
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

  // Returns true if `other` contains all tasks of this set.
  bool is_within(const VectorClock& other) const {
    for (size_t i = 0; i < tickets_.size(); ++i) {
      if (tickets_[i] > other.newest(static_cast<uint32_t>(i))) {
        return false;
      }
    }
    return true;
  }

 private:
  uint64_t newest(uint32_t queue) const { return queue < tickets_.size() ? tickets_[queue] : 0; }

  std::vector<uint64_t> tickets_;  // by queue; 0: no task
};

}  // namespace openreg::sanitizer
