// SPDX-License-Identifier: BSD-3-Clause
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

// Returns the time in nanoseconds since 1970, the unit of all times in records.
int64_t now_nanoseconds();

// The process group of a record.
struct FlightGroup {
  int64_t id = 0;     // The number of the group in this process.
  std::string name;   // The same on all ranks of the group, and unique.
  std::string title;  // For people.
  std::string ranks;  // "[0, 1]", in the default group.
};

// The record of one call: its arguments, and how far it has come. Members that are not atomic do not change.
struct FlightRecord {
  std::shared_ptr<const FlightGroup> group;
  std::string name;                          // The name by which PyTorch's analyzer of records knows the call.
  bool is_message = false;                   // True for send and receive.
  uint64_t collectives = 0;                  // Collectives of the group so far, this one included.
  uint64_t messages = 0;                     // Sends and receives of the group so far, this one included.
  uint64_t number = 0;                       // All calls of the group so far, this one included.
  std::string dtype;                         // The dtype of all tensors, as ScalarType spells it.
  std::vector<std::vector<int64_t>> inputs;  // Sizes.
  std::vector<std::vector<int64_t>> outputs;
  std::chrono::milliseconds timeout{};
  int64_t created = 0;
  std::string thread;
  std::shared_ptr<void> stack;  // The Python stack of the call; null if stacks are not recorded.

  uint64_t id = 0;                  // Unique among the records of the process.
  std::atomic<int64_t> started{0};  // When the transport got the operation; 0 if it has not.
  std::atomic<int64_t> ended{0};    // When the operation's status was decided; 0 if it is pending.
  std::atomic<bool> succeeded{false};
  std::atomic<int> source{-1};  // Of a receive: the rank that sends.
};

// A ring buffer of the last calls of all groups of the process, for finding the cause of a failure. Thread-safe.
class FlightRecorder {
 public:
  // Keeps `capacity` records; none if it is 0.
  explicit FlightRecorder(size_t capacity) : capacity_(capacity) {}

  size_t capacity() const noexcept { return capacity_; }
  // Adds a record and sets its id.
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
