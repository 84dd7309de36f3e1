// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "progress/operation.h"

namespace openreg::distributed {

// A queue of submitted operations (calls of a process group), with a thread that consumes them in order. The thread
// blocks until the device has executed the tasks before an operation.
//
// The thread shares the ownership of the queue's state and may outlive this object, because the device may wait for a
// peer that has exited. push() is thread-safe.
class SubmissionQueue {
 public:
  using Batch = std::vector<std::shared_ptr<Operation>>;
  // A function that is called on the queue's thread with all operations that were submitted since its last call. It
  // must not throw.
  using Consumer = std::function<void(const Batch&)>;

  explicit SubmissionQueue(Consumer consume);
  SubmissionQueue(const SubmissionQueue&) = delete;
  SubmissionQueue& operator=(const SubmissionQueue&) = delete;
  // Does not block. The thread consumes the operations that were submitted, and then ends.
  ~SubmissionQueue();

  void push(std::shared_ptr<Operation> operation);

 private:
  // The state that the queue and its thread share.
  struct SubmissionState {
    std::mutex mutex;
    std::condition_variable changed;
    Batch submitted;
    bool closed = false;
  };
  const std::shared_ptr<SubmissionState> state_ = std::make_shared<SubmissionState>();
};

}  // namespace openreg::distributed
