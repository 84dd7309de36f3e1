// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "operation.h"

namespace openreg::distributed {

// Operations that are begun one after the other, in the order in which they were submitted, by a thread of their own:
// the transport matches what the ranks do by this order. The thread waits for the device, and never for a peer.
//
// The thread is never joined, for it may wait for a device that waits for a peer that is gone. It owns its state.
class Channel {
 public:
  // Called on the channel's thread, for each operation in turn. Must not throw.
  using Begin = std::function<void(const std::shared_ptr<Operation>&)>;

  explicit Channel(Begin begin);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  // What is queued is still begun.
  ~Channel();

  void push(std::shared_ptr<Operation> operation);

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::shared_ptr<Operation>> queue;
    bool closed = false;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace openreg::distributed
