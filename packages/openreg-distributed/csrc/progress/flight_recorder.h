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

// Nanoseconds since 1970, as the times of records are.
int64_t now_nanoseconds();

// The group of a record.
struct FlightGroup {
  int64_t id = 0;     // number of the group in this process
  std::string name;   // the same on all its ranks, and no other group's
  std::string title;  // for people
  std::string ranks;  // "[0, 1]", in the default group
};

// The record of one call: what it was, and how far it came. What is not atomic does not change.
struct Flight {
  std::shared_ptr<const FlightGroup> group;
  std::string name;                          // as PyTorch's analyzer of such records knows it
  bool is_message = false;                   // between two ranks
  uint64_t collectives = 0;                  // of the group when it was called, itself included
  uint64_t messages = 0;                     // the same of messages
  uint64_t number = 0;                       // of all calls of the group
  std::string dtype;                         // of all tensors, as ScalarType is spelled
  std::vector<std::vector<int64_t>> inputs;  // sizes
  std::vector<std::vector<int64_t>> outputs;
  std::chrono::milliseconds timeout{};
  int64_t created = 0;
  std::string thread;
  std::shared_ptr<void> stack;  // of the calling line; null where nobody wants it

  uint64_t id = 0;                  // among all records of the process
  std::atomic<int64_t> started{0};  // when the transport got it; 0: not yet
  std::atomic<int64_t> ended{0};    // when its outcome was decided; 0: not yet
  std::atomic<bool> succeeded{false};
  std::atomic<int> source{-1};  // of a message that is received
};

// The last calls of all groups of the process, for who looks for the cause of a failure. Thread-safe.
class FlightRecorder {
 public:
  // Keeps so many.
  explicit FlightRecorder(size_t capacity) : capacity_(capacity) {}

  size_t capacity() const noexcept { return capacity_; }
  // Gives the record its id.
  void add(const std::shared_ptr<Flight>& flight);
  // From the oldest to the newest.
  std::vector<std::shared_ptr<const Flight>> flights() const;

 private:
  const size_t capacity_;
  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<const Flight>> flights_;
  uint64_t added_ = 0;
};

}  // namespace openreg::distributed
