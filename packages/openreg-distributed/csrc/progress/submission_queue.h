// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "progress/operation.h"

namespace openreg::distributed {

// A queue of submitted operations with a thread that consumes them in order. The thread blocks on the device.
//
// The thread owns the queue's state and may outlive this object, because the device may wait for a peer that has
// exited. push() is thread-safe.
class SubmissionQueue {
 public:
  using Batch = std::vector<std::shared_ptr<Operation>>;
  // Called on the queue's thread with everything that was submitted since the last call. Must not throw.
  using Consumer = std::function<void(const Batch&)>;

  explicit SubmissionQueue(Consumer consume);
  SubmissionQueue(const SubmissionQueue&) = delete;
  SubmissionQueue& operator=(const SubmissionQueue&) = delete;
  // The thread still consumes what was submitted, and then ends.
  ~SubmissionQueue();

  void push(std::shared_ptr<Operation> operation);

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    Batch submitted;
    bool closed = false;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace openreg::distributed
