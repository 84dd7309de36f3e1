// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "channel.h"
#include "operation.h"
#include "waiters.h"

namespace openreg::distributed {

// Moves the operations of one process group along: begins them in order, watches their time, ends all of them when one
// fails. Knows neither tensors nor the transport. Thread-safe; its threads share the ownership.
//
// A group fails as a whole: ranks that have missed one operation would take the messages of the next for it.
class Progress : public std::enable_shared_from_this<Progress> {
 public:
  static std::shared_ptr<Progress> create();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Begins the operation after those that were submitted for the same channel. After a failure it fails at once.
  void submit(const std::shared_ptr<Operation>& operation, int channel);
  // For the transport, once for each operation that it was handed: it does not touch the memory any more. An error is
  // empty, or why the operation failed.
  void transport_done(const std::shared_ptr<Operation>& operation, const std::string& error);
  // The group fails unless the operation is over in so long from now.
  void limit(const std::shared_ptr<Operation>& operation, std::chrono::milliseconds timeout);
  // For a transport that tells the end only to who waits.
  Waiters& waiters() noexcept { return waiters_; }

  // Ends everything now; operations from now on are refused with the reason.
  void abort(const std::string& reason);
  // Why the group takes no more operations; empty as long as it does.
  std::string failure() const;

  // Operations that were submitted and that the transport has not let go of.
  size_t outstanding() const;
  // Blocks until there is none.
  void wait_idle() const;

  // What operations held that are over. Only threads of the program drop it: a tensor may have an object of Python,
  // whose release needs the GIL.
  void drop_returned();
  // Nothing is submitted any more: the threads end when they have nothing left to do.
  void close();

 private:
  using Clock = std::chrono::steady_clock;

  struct Deadline {
    std::weak_ptr<Operation> operation;
    std::chrono::milliseconds timeout;
  };

  Progress() = default;
  void begin(const std::shared_ptr<Operation>& operation);
  void fail(const std::shared_ptr<Operation>& culprit, const std::string& cause);
  void refuse(const std::string& later);
  void end(Outcome outcome, const std::string& reason, const std::string& later);
  void watch();

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<int, std::unique_ptr<Channel>> channels_;
  std::vector<std::shared_ptr<Operation>> outstanding_;
  std::multimap<Clock::time_point, Deadline> deadlines_;
  std::vector<std::shared_ptr<void>> returned_;
  std::string failure_;
  bool watching_ = false;
  bool closed_ = false;
  Waiters waiters_;
};

}  // namespace openreg::distributed
