// SPDX-License-Identifier: BSD-3-Clause
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

// What a described chip takes for the tasks of a call; nanoseconds.
struct Cost {
  uint64_t engine_time = 0;
  uint64_t graph_time = 0;  // the same where a graph launches it
  int engine = -1;          // -1: that of the task's kind
  bool is_collective = false;
};

// What a task costs that no call of an operator explains: a generated kernel, say, or a copy by the driver.
struct Defaults {
  uint64_t host_launch = 0;
  uint64_t launch = 0;
  uint64_t link_latency = 0;
  double memory_time = 0;  // nanoseconds per byte
  double link_time = 0;
  int copy_engine = 0;
  int engines = 1;  // of one device
};

// A task of the device, in the chip's time: nanoseconds of the clock of the device's events.
struct Entry {
  int64_t call = -1;  // the call of an operator that enqueued it, or that a graph repeats; -1: none
  int kind = 0;       // orTaskKind
  int device = 0;
  uint32_t queue = 0;
  uint64_t ticket = 0;
  uint64_t bytes = 0;  // of a copy or fill; of a kernel those of its operands
  uint64_t graph_launch = 0;
  uint64_t node = 0;
  bool is_first = false;   // of its call
  std::string name;        // of a kernel
  uint64_t host_time = 0;  // which the host took to enqueue it
  int engine = -1;         // of its device; -1: none
  uint64_t launched = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// An observer that keeps the device's time (openreg.h, orSubscribeTime): that of a described chip. Python says what
// each call of an operator costs, before the device needs to know it, for work is held back until the host waits. The
// cost of a call is shared out among its tasks by their bytes. One thread starts and stops it; calls may come from any.
class Timekeeper {
 public:
  explicit Timekeeper(const Defaults& defaults) : defaults_(defaults) {}
  // Waits, as stop() does: not to be called while the GIL is held.
  ~Timekeeper();
  Timekeeper(const Timekeeper&) = delete;
  Timekeeper& operator=(const Timekeeper&) = delete;

  // Waits until nothing is queued. Throws c10::Error where the device refuses.
  void start();
  // Runs what is held back.
  void stop();
  void set_cost(int64_t call, const Cost& cost);

  // After stop(): what ran, in the order of the host; until when the host waited, each time that it did; and its clock
  // at the beginning.
  const std::deque<Entry>& entries() const { return entries_; }
  const std::vector<uint64_t>& waits() const { return waits_; }
  uint64_t begin() const { return begin_; }

 private:
  struct Call {
    Cost cost;
    uint64_t tasks = 0;  // of the device itself; those of a capture below
    uint64_t bytes = 0;
    uint64_t spent = 0;  // of its time
    uint64_t nodes = 0;
    uint64_t node_bytes = 0;
  };
  struct Node {
    int64_t call;
    uint64_t bytes;
    bool is_first;
  };

  void submit(const orTaskInfo& task, uint64_t& correlation);
  void capture(const orTaskInfo& task);
  void complete(const orTaskCompletion& task);
  void sync(const orSyncInfo& sync);
  uint64_t duration(const Entry& entry);
  uint64_t default_duration(const Entry& entry) const;
  int engine(const Entry& entry);
  uint64_t host(Entry& entry);

  const Defaults defaults_;
  orSubscription_t subscription_ = nullptr;
  std::mutex mutex_;  // the device calls one callback at a time; set_cost() comes beside them
  std::unordered_map<int64_t, Call> calls_;
  std::unordered_map<uint64_t, Node> nodes_;
  std::deque<Entry> entries_;
  std::vector<uint64_t> waits_;
  uint64_t begin_ = 0;
  uint64_t newest_graph_launch_ = 0;
};

// From now on this thread is in a call; -1: in none.
void enter_call(int64_t call);

}  // namespace openreg::predict
