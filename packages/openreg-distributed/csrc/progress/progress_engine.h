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

// The progress engine of one process group (a term of MPI and UCX: the threads that start, time and finish operations).
// It announces each operation to the other ranks, starts it when the signatures match, enforces its timeout, and fails
// the group when an operation fails. It uses neither tensors nor, directly, the transport (the c10d backend that moves
// bytes between ranks, Gloo). Thread-safe. Its threads share the ownership.
//
// A group fails as a whole, because a rank that misses one operation would take the data of the next operation for it.
//
// Threads: each submission queue has one, which blocks on the device. Each peer has one, which receives its control
// messages. One is the watchdog, which enforces timeouts. Those of wait_threads() wait for calls of the transport that
// have no future. The thread that finds that an operation may start hands it to the transport. The threads end after
// close() and the last operation. Threads owns them.
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

  // Adds an operation to the submission queue with the number `queue`, whose thread waits for operations in order. A
  // new number creates a queue. Collectives are submitted in the order of their numbers. If the group has failed, the
  // operation fails. Throws std::system_error if the system cannot create a thread; then the operation is not
  // submitted, and the caller ends it with fail().
  void submit(const std::shared_ptr<Operation>& operation, int queue);
  // Completes an operation. The transport calls it once for each operation that it got, when it does not use the memory
  // any more. `error` is empty or an error message.
  void transport_done(const std::shared_ptr<Operation>& operation, const std::string& error);
  // Fails the group unless the operation, which was submitted, is complete within `timeout` from now.
  void limit(const std::shared_ptr<Operation>& operation, std::chrono::milliseconds timeout);
  // Fails the group on all ranks because of `culprit`, unless `culprit` is complete.
  void fail(const std::shared_ptr<Operation>& culprit, const std::string& cause);
  // Returns the threads that wait for calls of the transport without a future.
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

  // Releases what complete operations have retained. A tensor may have a Python object, and releasing that takes the
  // GIL. So threads of the program call it, and in the end the thread that destroys the transport, and never a thread
  // of the engine or of the transport, for which one that holds the GIL may wait.
  void drop_returned();
  // Requests the threads to end when nothing is left to do. Nothing may be submitted afterwards.
  void close();
  // Blocks until all operations are complete and the control channel is not used any more. Called after close().
  void wait_closed();

 private:
  using SteadyClock = std::chrono::steady_clock;
  using OperationPtr = std::shared_ptr<Operation>;

  // A guard that counts the calling thread as a user of the control channel.
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
  // Runs on the thread of a submission queue: announces operations, and makes each ready when the device has executed
  // the tasks before it.
  void consume(const SubmissionQueue::Batch& batch);
  // Sends the control messages about operations to all peers.
  void announce(const SubmissionQueue::Batch& batch);
  // Starts all operations that may start. Returns at once if another thread executes this function, because that thread
  // then starts them.
  void begin_ready();
  // Hands an operation to the transport, or completes it if `problem` is not empty.
  void begin(const OperationPtr& operation, const std::string& problem);
  // Completes an operation whose memory is not used any more. `problem` is empty or an error message.
  void finish(const OperationPtr& operation, const std::string& problem);
  // Returns an error of the transport with the names of the peers that were lost. Waits a moment for their reports.
  std::string explained(const std::string& error);
  // Starts a thread for each peer that has none, which runs read(). The caller holds `mutex_`.
  void start_readers();
  // Starts the watchdog, once. The caller holds `mutex_`. submit() calls it, and not limit(), because the thread of a
  // submission queue must not throw.
  void start_watchdog();
  // Receives the control messages of a peer until the channel is closed or the peer is lost.
  void read(int peer);
  // Passes a peer's control messages about operations to the matcher, and fails the group if one reports a failure or
  // an abort.
  void on_message(int peer, std::string_view encoded);
  // Marks a peer as lost, so that the operations that wait for it fail.
  void on_peer_lost(int peer, const std::string& reason);
  // Makes the group reject operations from now on. Returns false if it rejected them before.
  bool refuse(OperationStatus status, const std::string& reason);
  // Steps 1 to 3 of end_all() for this group.
  void leave();
  // Completes an operation of a group that rejects operations, with the status given to refuse().
  void fail_after_close(const OperationPtr& operation, const std::string& reason);
  // Completes all outstanding operations; without `also_posted`, only those that the transport does not have.
  void end(const std::string& reason, bool also_posted);
  // Sends a last control message to all peers and closes the channel.
  void notify_peers(ControlMessage::Kind kind, const std::string& text);
  // Runs on the watchdog: fails the group when an operation has exceeded its timeout.
  void watch();
  // Fails the group because of an operation that has exceeded its timeout.
  void time_out(const OperationPtr& late);

  const int rank_;
  const int size_;
  const std::shared_ptr<ControlChannel> control_channel_;
  const std::function<void()> on_failure_;

  mutable std::mutex mutex_;
  // The events that the condition variables signal:
  mutable std::condition_variable idle_;      // Nothing is outstanding, or the control channel is not used.
  std::condition_variable watch_;             // There is an earlier deadline, or the watchdog has to end.
  std::condition_variable failure_reported_;  // A peer is lost, or the group has failed.
  std::map<int, std::unique_ptr<SubmissionQueue>> queues_;
  OperationMatcher matcher_;
  std::list<OperationPtr> outstanding_;
  std::vector<std::shared_ptr<void>> returned_;  // The retained objects of complete operations, for drop_returned().
  std::string failure_;  // The reason why the group rejects operations; empty if it accepts them.
  OperationStatus closed_status_ = OperationStatus::kFailed;            // The status that goes with `failure_`.
  SteadyClock::time_point next_look_ = SteadyClock::time_point::max();  // The time until which the watchdog sleeps.
  int users_ = 0;           // The number of threads that use the control channel.
  int next_reader_ = 0;     // start_readers() has started the threads of the peers before this one.
  bool beginning_ = false;  // A thread is in begin_ready().
  bool watching_ = false;   // The watchdog has been started.
  bool closed_ = false;     // close() has been called.
  bool silent_ = false;     // An injected fault has cut the control channel: nothing new is announced or started.
  WaitThreadPool wait_threads_;
};

}  // namespace openreg::distributed
