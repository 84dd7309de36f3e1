// SPDX-License-Identifier: BSD-3-Clause
// The happens-before order of the tasks of all streams and of the host, computed from the callbacks of the driver. It
// depends on the waits that the program requests, never on which tasks happen to be complete.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "openreg.h"
#include "vector_clock.h"

namespace openreg::sanitizer {

// A stream of the program by its device index and its c10::StreamId, which is 0 for the default stream.
struct StreamName {
  int device = -1;  // -1: no stream
  int64_t id = 0;
};

// The vector clocks of all queues, events and semaphores, and one of the host. A queue is the driver's number of a
// stream, and a vector clock is the set of tasks that happen before something (vector_clock.h). The threads of the
// program share the host's clock, because the order between them (locks, queues of Python) is unknown: a wait of one
// thread counts for all. Waits of helper threads, which drive collectives and run no Python, do not count. The caller
// holds the sanitizer's mutex.
class Ordering {
 public:
  // Sets the handles of the default streams, by device.
  void set_default_streams(std::vector<orStream_t> handles) { defaults_ = std::move(handles); }

  // Takes a report of the callback `submit` of orSubscriber (openreg.h): a thread enqueues a task. Returns the clock of
  // that task. The reference is valid until the next call of a function that is not const.
  const VectorClock& submit(const orTaskInfo& task);
  // Takes a report of the callback `sync` of orSubscriber. `is_helper`: the calling thread is a helper thread.
  // `is_implicit`: the program did not request this wait (an allocator's query, OPENREG_LAUNCH_BLOCKING), so no program
  // may rely on it.
  void synchronize(const orSyncInfo& sync, bool is_helper, bool is_implicit);

  // Returns the clock of the host: the tasks for which it has waited.
  const VectorClock& host() const { return host_; }
  // Returns the queue of a stream, or nothing if the stream has not been used.
  std::optional<uint32_t> find_queue(const StreamName& stream) const;
  // Returns the stream of a queue, or one with device -1 if it is unknown.
  StreamName stream(uint32_t queue) const { return queue < queues_.size() ? queues_[queue].stream : StreamName(); }

  // Return the newest task of a queue, the clock of its next task, and that clock with the newest task. The queue is a
  // result of find_queue().
  TaskId newest_task(uint32_t queue) const { return {queue, queues_[queue].newest_ticket}; }
  const VectorClock& next_clock(uint32_t queue) const { return queues_[queue].clock; }
  VectorClock clock_after_newest(uint32_t queue) const { return clock_after(newest_task(queue)); }

 private:
  struct QueueState {
    StreamName stream;
    uint64_t newest_ticket = 0;
    uint64_t host_epoch = 0;  // value of host_epoch_ when the host's clock was joined last
    VectorClock clock;        // of the next task
    // Earlier clocks, oldest first, each with the newest ticket for which it is valid.
    std::deque<std::pair<uint64_t, VectorClock>> history;
  };
  struct SemaphoreState {
    std::vector<std::pair<uint64_t, VectorClock>> signals;  // value, and the clock of the thread that signaled it
    std::vector<std::pair<uint64_t, uint32_t>> waits;       // value and queue, of waits without a signal so far
  };

  QueueState& state_of(uint32_t queue);
  void set_stream(uint32_t queue, int device, orStream_t stream);
  VectorClock clock_after(const TaskId& task) const;
  VectorClock clock_of_event(const orSyncInfo& sync) const;
  void join_queue(uint32_t queue, const VectorClock& clock);
  void join_host(const VectorClock& clock);
  void join_device(int device);
  void record_event(const orSyncInfo& sync);
  void signal_semaphore(const orSyncInfo& sync, bool is_helper);
  void wait_for_semaphore(const orSyncInfo& sync);
  void limit_events();

  std::vector<QueueState> queues_;
  std::vector<orStream_t> defaults_;
  std::unordered_map<orEvent_t, VectorClock> events_;  // clocks of recorded events
  size_t event_limit_ = 4096;                          // number of events at which some are forgotten
  std::unordered_map<orSemaphore_t, SemaphoreState> semaphores_;
  VectorClock host_;
  uint64_t host_epoch_ = 1;  // number of changes of host_
};

}  // namespace openreg::sanitizer
