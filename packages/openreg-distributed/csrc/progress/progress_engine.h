// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "control_channel.h"
#include "operation.h"
#include "operation_matcher.h"
#include "submission_queue.h"
#include "wait_thread_pool.h"

namespace openreg::distributed {

// Moves the operations of one process group along: tells the other ranks of them, begins them in order when all agree,
// watches their time, ends all of them when one fails, and says so to the other ranks. Knows neither tensors nor the
// transport. Thread-safe; its threads share the ownership.
//
// A group fails as a whole: ranks that have missed one operation would take the messages of the next for it.
//
// Threads: one for each channel waits for the device; one for each other rank waits for what that announces; one
// watches the time. Whichever of them finds that an operation may begin hands it to the transport. They end after
// close(), when they have nothing left to do, and are owned by Threads.
//
// A process that exits ends the groups that it has left, in this order (end_all()):
//   1. The group refuses operations, and the threads are told to end.
//   2. What is under way is settled as aborted: the device and the threads that wait for it go on.
//   3. The link is closed, without a message: other ranks learn what they learn of a process that was killed.
//   4. The threads are joined, within a limit: one may wait for a kernel that does not end.
class Progress : public std::enable_shared_from_this<Progress> {
 public:
  // The link is used until the threads have ended (wait_closed()); null where there is no other rank. `on_failure` is
  // called when the group fails, not when it is aborted, after all were told; it must not throw.
  static std::shared_ptr<Progress> create(int rank, int size, std::shared_ptr<PeerLink> link,
                                          std::function<void()> on_failure);
  // Ends all groups of this process and joins all threads; false if some still run when the limit is over. For the
  // exit of a process, while the driver still works. Must not be called by a thread of a group.
  static bool end_all(std::chrono::milliseconds limit);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Takes the operation up after those that were submitted for the same channel; collectives are submitted in the order
  // of their numbers. After a failure it fails at once.
  void submit(const std::shared_ptr<Operation>& operation, int channel);
  // For the transport, once for each operation that it was handed: it does not touch the memory any more. An error is
  // empty, or why the operation failed.
  void transport_done(const std::shared_ptr<Operation>& operation, const std::string& error);
  // The group fails unless the operation is over in so long from now.
  void limit(const std::shared_ptr<Operation>& operation, std::chrono::milliseconds timeout);
  // The operation and with it the group fails, here and on the other ranks, unless it is over.
  void fail(const std::shared_ptr<Operation>& culprit, const std::string& cause);
  // For a transport that tells the end only to who waits.
  Waiters& waiters() noexcept { return waiters_; }

  // Ends everything now, here and on the other ranks; operations from now on are refused with the reason.
  void abort(const std::string& reason);
  // The same for this rank alone, which has nothing under way.
  void shut_down(const std::string& reason) { refuse(Outcome::kAborted, reason); }
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
  // Blocks until the link is not used any more, after close(). Takes as long as it takes the operations to end.
  void wait_closed();

 private:
  using Clock = std::chrono::steady_clock;
  using OperationPtr = std::shared_ptr<Operation>;

  // While one lives, the link is in use.
  class Use {
   public:
    explicit Use(Progress& progress);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();

   private:
    Progress& progress_;
  };

  Progress(int rank, int size, std::shared_ptr<PeerLink> link, std::function<void()> on_failure);
  void take_up(const Channel::Batch& batch);
  void announce(const Channel::Batch& batch);
  // Begins what may begin. One thread at a time does; others leave it what they have found.
  void begin_ready();
  void begin(const OperationPtr& operation, const std::string& problem);
  // Nobody uses the operation's memory any more. A problem is empty, or why it failed.
  void finish(const OperationPtr& operation, const std::string& problem);
  std::string explained(const std::string& error);
  void start_readers();
  void read(int peer);
  void hear(int peer, std::string_view message);
  void lose(int peer, const std::string& reason);
  // Closes the group, whose operations have this outcome from now on; false if it was closed before.
  bool refuse(Outcome outcome, const std::string& reason);
  // This group's part of end_all(), but for the threads.
  void leave();
  // Ends an operation of a group that is closed; or all, or those that the transport does not have.
  void settle_closed(const OperationPtr& operation, const std::string& reason);
  void end(const std::string& reason, bool also_posted);
  // The last that other ranks hear.
  void tell_others(Announcement::Kind kind, const std::string& text);
  void watch();
  void time_out(const OperationPtr& late);

  const int rank_;
  const int size_;
  const std::shared_ptr<PeerLink> link_;
  const std::function<void()> on_failure_;

  mutable std::mutex mutex_;
  mutable std::condition_variable idle_;  // nothing is outstanding, or the link not in use
  std::condition_variable watch_;         // an earlier deadline, or the end
  std::condition_variable heard_;         // another rank is lost, or the group has failed
  std::map<int, std::unique_ptr<Channel>> channels_;
  Agreement agreement_;
  std::list<OperationPtr> outstanding_;
  std::vector<std::shared_ptr<void>> returned_;
  std::string failure_;
  Outcome closed_outcome_ = Outcome::kFailed;
  Clock::time_point next_look_ = Clock::time_point::max();  // of the watching thread
  int users_ = 0;
  bool reading_ = false;
  bool beginning_ = false;
  bool watching_ = false;
  bool closed_ = false;
  bool silent_ = false;  // an injected fault has cut the link: nothing new is announced or begun
  Waiters waiters_;
};

}  // namespace openreg::distributed
