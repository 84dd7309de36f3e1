// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "operation.h"

namespace openreg::distributed {

// Operations that are taken up one after the other, in the order in which they were submitted, by a thread of their
// own, which waits for the device.
//
// The thread owns its state and may outlive this object: it may wait for a device that waits for a peer that is gone.
class Channel {
 public:
  using Batch = std::vector<std::shared_ptr<Operation>>;
  // Called on the channel's thread with all that was submitted since the last call. Must not throw.
  using TakeUp = std::function<void(const Batch&)>;

  explicit Channel(TakeUp take_up);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  // What was submitted is still taken up.
  ~Channel();

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
