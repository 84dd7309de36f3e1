// SPDX-License-Identifier: BSD-3-Clause
// A time source: a subscriber of the driver that replaces the clock of the openreg devices by simulated time
// (orSubscribeTime in openreg.h). This one simulates the speed of a chip that a description file describes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "openreg.h"

namespace openreg::predict {

// The time that the chip needs for all tasks of one operator call. In nanoseconds.
struct CallCost {
  uint64_t engine_time = 0;
  uint64_t graph_time = 0;  // engine time if a graph launches the tasks
  int engine = -1;          // index of the engine; -1: the tasks have the default cost and engine of their kinds
  bool is_collective = false;
};

// The cost of a task that belongs to no operator call, such as a generated kernel or a copy by the driver. In
// nanoseconds.
struct DefaultCosts {
  uint64_t host_launch = 0;   // time of the host for a launch
  uint64_t launch = 0;        // time of the engine for a launch
  uint64_t link_latency = 0;  // time of a copy before its first byte
  double memory_time = 0;     // per byte that a kernel or fill moves
  double link_time = 0;       // per byte of a copy
  int copy_engine = 0;        // index of the engine for copies
  int engines = 1;            // number of engines of each device
};

// The record of one task. Times are nanoseconds of the clock of the device's events, which shows the chip's time.
struct TaskTiming {
  int64_t call = -1;  // number of the operator call that enqueued it, or whose node a graph replays; -1: none
  int kind = 0;       // orTaskKind
  int device = 0;
  uint32_t queue = 0;         // number of its stream (orTaskInfo::queue)
  uint64_t ticket = 0;        // its sequence number in that stream
  uint64_t bytes = 0;         // of a copy or fill; sum over the operands of a kernel
  uint64_t graph_launch = 0;  // number of the graph launch that it belongs to; 0: none
  uint64_t node = 0;          // number of its graph node; 0: none
  bool is_first = false;      // the first task of its call
  std::string name;           // of a kernel
  uint64_t host_time = 0;     // time of the host to enqueue it
  int engine = -1;            // index in its device; -1: none
  uint64_t launched = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// The time source of the described chip. Python sets the cost of each operator call. It does so before the driver
// requests the durations of the call's tasks, because tasks are deferred until the host waits. The cost of a call is
// divided among its tasks in proportion to their bytes. One thread starts and stops the time source. Operator calls may
// be on any thread.
class ChipTimeSource {
 public:
  explicit ChipTimeSource(const DefaultCosts& defaults) : defaults_(defaults) {}
  // Unsubscribes if stop() was not called, and warns if the driver reports an error. The caller does not hold the GIL,
  // because the destructor blocks on kernels.
  ~ChipTimeSource();
  ChipTimeSource(const ChipTimeSource&) = delete;
  ChipTimeSource& operator=(const ChipTimeSource&) = delete;

  // Subscribes, and blocks until no task is queued. Throws c10::Error if the driver rejects the subscription. The
  // caller does not hold the GIL.
  void start();
  // Unsubscribes, and blocks until the deferred tasks are complete. Throws c10::Error if the driver reports an error.
  // The caller does not hold the GIL.
  void stop();
  // Sets the cost of all tasks of a call. Thread-safe.
  void set_cost(int64_t call, const CallCost& cost);

  // Returns the tasks in the order in which the host enqueued them. Valid after stop().
  const std::deque<TaskTiming>& entries() const { return entries_; }
  // Returns the times of the host's clock at the ends of its waits, in nanoseconds. Valid after stop().
  const std::vector<uint64_t>& waits() const { return waits_; }
  // Returns the time of the host's clock after start(), in nanoseconds.
  uint64_t begin() const { return begin_; }

 private:
  // The cost of an operator call, and the part of it that its tasks have received.
  struct CallBudget {
    CallCost cost;
    uint64_t tasks = 0;       // tasks that were enqueued outside of a capture
    uint64_t bytes = 0;       // their bytes
    uint64_t spent = 0;       // engine time that they have received, in nanoseconds
    uint64_t nodes = 0;       // tasks that were captured into a graph
    uint64_t node_bytes = 0;  // their bytes
  };
  // A task that was captured into a graph.
  struct CapturedNode {
    int64_t call;  // -1: none
    uint64_t bytes;
    bool is_first;
  };

  // The callbacks `submit`, `capture`, `complete` and `sync` of orSubscriber.
  void submit(const orTaskInfo& task, uint64_t& correlation);
  void capture(const orTaskInfo& task);
  void complete(const orTaskCompletion& task);
  void sync(const orSyncInfo& sync);
  // The callbacks `duration`, `engine` and `host` of orSubscriber call duration(), engine() and host_time(). The caller
  // of the functions below holds `mutex_`.
  uint64_t duration(const TaskTiming& entry);
  uint64_t default_duration(const TaskTiming& entry) const;
  int engine(const TaskTiming& entry);
  uint64_t host_time(TaskTiming& entry);

  const DefaultCosts defaults_;
  orSubscription_t subscription_ = nullptr;
  std::mutex mutex_;  // the driver serializes callbacks, but set_cost() is concurrent with them
  std::unordered_map<int64_t, CallBudget> calls_;     // by the number of a call
  std::unordered_map<uint64_t, CapturedNode> nodes_;  // by the number of a node
  std::deque<TaskTiming> entries_;                    // the index is the driver's correlation number of a task
  std::vector<uint64_t> waits_;
  uint64_t begin_ = 0;
  uint64_t newest_graph_launch_ = 0;
};

// Sets the number of the operator call to which tasks of the calling thread belong from now on; -1: none.
void enter_call(int64_t call);

}  // namespace openreg::predict
