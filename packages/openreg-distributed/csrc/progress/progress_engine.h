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

#include "progress/control_channel.h"
#include "progress/operation.h"
#include "progress/operation_matcher.h"
#include "progress/submission_queue.h"
#include "progress/wait_thread_pool.h"

namespace openreg::distributed {

// Drives the operations of one process group. It announces each to the other ranks, starts it when the signatures
// match, enforces its timeout, and fails the group when one fails. Uses neither tensors nor the transport. Thread-safe;
// its threads share the ownership.
//
// A group fails as a whole, because a rank that misses one operation would take the data of the next for it.
//
// Threads: each submission queue has one, which blocks on the device; each peer has one, which receives its control
// messages; one is the watchdog. Whichever finds that an operation may start hands it to the transport. The threads end
// after close(), when nothing is left to do, and are owned by Threads.
//
// A process that exits with groups that it has not destroyed ends them in this order (end_all()):
//   1. The group rejects operations, and its threads are requested to end.
//   2. Outstanding operations are completed as aborted, so that the device and blocked threads continue.
//   3. The control channel is closed without a message. To the other ranks this rank looks like one that was killed.
//   4. The threads are joined, within a limit, because a thread may wait for a kernel that does not end.
class ProgressEngine : public std::enable_shared_from_this<ProgressEngine> {
 public:
  // `control_channel` is used until wait_closed() returns; it is null in a group of one rank. `on_failure` is called
  // once if the group fails, after all ranks were notified, and not if it is aborted; it must not throw.
  static std::shared_ptr<ProgressEngine> create(int rank, int size, std::shared_ptr<ControlChannel> control_channel,
                                                std::function<void()> on_failure);
  // Ends all groups of this process and joins all threads. Returns false if some still run when `limit` is over. Called
  // when the process exits, before the driver stops, and never by a thread of a group.
  static bool end_all(std::chrono::milliseconds limit);
  ProgressEngine(const ProgressEngine&) = delete;
  ProgressEngine& operator=(const ProgressEngine&) = delete;

  // Adds an operation to a queue. Collectives are submitted in the order of their numbers. If the group has failed, the
  // operation fails.
  void submit(const std::shared_ptr<Operation>& operation, int queue);
  // Called by the transport, once for each operation that it got, when it does not use the memory any more. `error` is
  // empty, or why the operation failed.
  void transport_done(const std::shared_ptr<Operation>& operation, const std::string& error);
  // Fails the group unless the operation is complete in `timeout` from now.
  void limit(const std::shared_ptr<Operation>& operation, std::chrono::milliseconds timeout);
  // Fails the group, on all ranks, unless `culprit` is complete.
  void fail(const std::shared_ptr<Operation>& culprit, const std::string& cause);
  // Returns the threads for transport calls without a future.
  WaitThreadPool& wait_threads() noexcept { return wait_threads_; }

  // Aborts all operations, on all ranks. Later ones are rejected with `reason`.
  void abort(const std::string& reason);
  // Rejects operations on this rank from now on. Nothing may be outstanding.
  void shut_down(const std::string& reason) { refuse(OperationStatus::kAborted, reason); }
  // Returns why the group rejects operations; empty if it accepts them.
  std::string failure() const;

  // Returns the number of operations that were submitted and whose memory the transport may still use.
  size_t outstanding() const;
  // Blocks until outstanding() is 0.
  void wait_idle() const;

  // Releases what complete operations have retained. Called by threads of the program only: a tensor may have a Python
  // object, and releasing that takes the GIL.
  void drop_returned();
  // Requests the threads to end when nothing is left to do. Nothing may be submitted afterwards.
  void close();
  // Blocks until all operations are complete and the control channel is not used any more. Called after close().
  void wait_closed();

 private:
  using Clock = std::chrono::steady_clock;
  using OperationPtr = std::shared_ptr<Operation>;

  // Marks the control channel as used while it lives.
  class ChannelUse {
   public:
    explicit ChannelUse(ProgressEngine& progress);
    ChannelUse(const ChannelUse&) = delete;
    ChannelUse& operator=(const ChannelUse&) = delete;
    ~ChannelUse();

   private:
    ProgressEngine& progress_;
  };

  ProgressEngine(int rank, int size, std::shared_ptr<ControlChannel> control_channel, std::function<void()> on_failure);
  void consume(const SubmissionQueue::Batch& batch);
  void announce(const SubmissionQueue::Batch& batch);
  // Starts all operations that may start. If another thread is doing so, it leaves them to that thread.
  void begin_ready();
  void begin(const OperationPtr& operation, const std::string& problem);
  // Completes an operation whose memory is not used any more. `problem` is empty, or why it failed.
  void finish(const OperationPtr& operation, const std::string& problem);
  std::string explained(const std::string& error);
  void start_readers();
  void read(int peer);
  void on_message(int peer, std::string_view encoded);
  void on_peer_lost(int peer, const std::string& reason);
  // Makes the group reject operations. Returns false if it did before.
  bool refuse(OperationStatus status, const std::string& reason);
  // Steps 1 to 3 of end_all() for this group.
  void leave();
  // Completes an operation of a group that rejects operations, with the status given to refuse().
  void fail_after_close(const OperationPtr& operation, const std::string& reason);
  // Completes all outstanding operations; without `also_posted`, only those that the transport does not have.
  void end(const std::string& reason, bool also_posted);
  // Sends a last control message to all peers and closes the channel.
  void notify_peers(ControlMessage::Kind kind, const std::string& text);
  void watch();
  void time_out(const OperationPtr& late);

  const int rank_;
  const int size_;
  const std::shared_ptr<ControlChannel> control_channel_;
  const std::function<void()> on_failure_;

  mutable std::mutex mutex_;
  mutable std::condition_variable idle_;  // Nothing is outstanding, or the control channel is not used.
  std::condition_variable watch_;         // There is an earlier deadline, or the watchdog has to end.
  std::condition_variable heard_;         // A peer is lost, or the group has failed.
  std::map<int, std::unique_ptr<SubmissionQueue>> queues_;
  OperationMatcher matcher_;
  std::list<OperationPtr> outstanding_;
  std::vector<std::shared_ptr<void>> returned_;
  std::string failure_;
  OperationStatus closed_status_ = OperationStatus::kFailed;
  Clock::time_point next_look_ = Clock::time_point::max();  // Of the watchdog.
  int users_ = 0;                                           // Of the control channel.
  bool reading_ = false;
  bool beginning_ = false;
  bool watching_ = false;
  bool closed_ = false;
  bool silent_ = false;  // An injected fault has cut the control channel: nothing new is announced or started.
  WaitThreadPool wait_threads_;
};

}  // namespace openreg::distributed
