// SPDX-License-Identifier: BSD-3-Clause
// The flight recorder: a ring buffer of records of the last calls of the process groups of this process. The transport
// is the c10d backend that moves the data of these calls between ranks, Gloo.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace openreg::distributed {

// Returns the time of the system clock in nanoseconds since 1970, the unit of all times in records.
int64_t now_nanoseconds();

// The process group of a record.
struct FlightGroup {
  int64_t id = 0;     // The number of the group in this process.
  std::string name;   // The unique name of the group, equal on all its ranks (Backend::getGroupUid()).
  std::string title;  // The description that the program has given (Backend::getGroupDesc()).
  std::string ranks;  // The ranks of the group by their numbers in the default group, such as "[0, 1]".
};

// The flight record of one call: its arguments and its progress. Members that are not atomic are constant after
// FlightRecorder::add().
struct FlightRecord {
  std::shared_ptr<const FlightGroup> group;
  // The name by which PyTorch's analyzer of records (torch.distributed.flight_recorder.fr_trace) knows the call. That
  // of a receive ends with "<-", and the dump appends `source`.
  std::string name;
  bool is_message = false;   // True for send and receive.
  uint64_t collectives = 0;  // Collectives of the group so far, including this call if it is one.
  uint64_t messages = 0;     // Sends and receives of the group so far, including this call if it is one.
  uint64_t number = 0;       // All calls of the group so far, including this one.
  std::string dtype;         // The dtype of all tensors, as c10::toString() spells it, such as "Float".
  // The sizes of each input and of each output. The inputs of reduce_scatter and the outputs of all_gather, if all have
  // the same sizes, are recorded as one tensor with a further first dimension, as the analyzer expects.
  std::vector<std::vector<int64_t>> inputs;
  std::vector<std::vector<int64_t>> outputs;
  std::chrono::milliseconds timeout{};
  int64_t created = 0;          // The time of the call.
  std::string thread;           // The name of the calling thread.
  std::shared_ptr<void> stack;  // The Python stack of the call, from calling_stack(); may be null.

  uint64_t id = 0;                  // Unique among the records of the process.
  std::atomic<int64_t> started{0};  // The time at which the transport got the operation; 0 before.
  std::atomic<int64_t> ended{0};    // The time at which the operation's status was decided; 0 while it is pending.
  std::atomic<bool> succeeded{false};
  // For a receive, the rank in the group that sends; -1 while it is unknown, and for all other calls.
  std::atomic<int> source{-1};
};

// A ring buffer of the records of the last calls of all groups of the process, from which the cause of a failure can be
// found (source: c10d's FlightRecorder). Thread-safe.
class FlightRecorder {
 public:
  // `capacity` is the number of records that are kept; 0 disables the recorder.
  explicit FlightRecorder(size_t capacity) : capacity_(capacity) {}

  size_t capacity() const noexcept { return capacity_; }
  // Adds a record and sets its id. Does nothing if the recorder is disabled.
  void add(const std::shared_ptr<FlightRecord>& flight);
  // Returns the records, the oldest first.
  std::vector<std::shared_ptr<const FlightRecord>> records() const;

 private:
  const size_t capacity_;
  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<const FlightRecord>> records_;
  uint64_t added_ = 0;
};

}  // namespace openreg::distributed
