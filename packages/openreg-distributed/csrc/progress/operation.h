// SPDX-License-Identifier: BSD-3-Clause
// An operation, which is one call of a process group, with its description, signature and status. The progress engine
// (progress_engine.h) drives it, and the transport (the c10d backend that moves bytes between ranks, Gloo) moves its
// data.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "openreg.h"
#include "progress/flight_recorder.h"

namespace openreg::distributed {

class Operation;

// The description of an operation for error messages. It stores values, because the text is needed only for an error.
struct OperationDescription {
  const char* name = "";                     // A literal: the name in torch.distributed.
  uint64_t sequence = 0;                     // The number of the call in its group, from 1 on.
  std::string dtype;                         // The dtype of the first tensor.
  std::vector<int64_t> sizes;                // The sizes of the first tensor.
  size_t tensors = 0;                        // The number of tensors.
  uint64_t bytes = 0;                        // The bytes of all tensors.
  const char* reduction = nullptr;           // A literal such as "SUM"; null if the call does not reduce.
  int root = -1;                             // The root of a collective; -1 if it has none.
  int peer = -1;                             // The other rank of a send or receive; negative if there is none, or any.
  std::shared_ptr<const std::string> group;  // "rank 0 of 2 in the group ...".

  // Returns "all_reduce number 7 (float32 [4, 4], 64 bytes, SUM)".
  std::string call() const;
  // Returns call() followed by "on rank 0 of 2 in the group 'default_pg'".
  std::string text() const;
};

// The properties of a call that have to match on other ranks: on all ranks for a collective, on two for a message. A
// message is a send and its receive.
struct OperationSignature {
  enum class Kind : uint8_t { kCollective, kSend, kReceive };

  Kind kind = Kind::kCollective;
  uint64_t number = 0;             // kCollective: the index among the collectives of the group, from 0 on.
  uint64_t fingerprint = 0;        // kCollective: CollectiveFingerprint::hash().
  std::vector<uint64_t> sent;      // Bytes for each rank, or one number for all ranks.
  std::vector<uint64_t> expected;  // Bytes from each rank, or one number for all ranks.
  int peer = -1;                   // kSend, kReceive: the other rank; negative for any.
  int tag = 0;                     // kSend, kReceive: the tag of the message.

  uint64_t sent_to(int rank) const { return sent.size() == 1 ? sent[0] : sent[static_cast<size_t>(rank)]; }
  uint64_t expected_from(int rank) const {
    return expected.size() == 1 ? expected[0] : expected[static_cast<size_t>(rank)];
  }
};

// A fault that is injected into an operation.
enum class CollectiveFault : uint8_t {
  kNothing,
  kDelayed,  // The operation starts a second late.
  kDropped,  // The operation and all later ones of its group are lost.
  kKilled,   // The process is killed instead.
};

// The wait of a communication stream for one operation: the stream records the event `ready`, and then waits until the
// semaphore has the value `value`. Owns the event. Thread-safe.
class StreamWait {
 public:
  StreamWait(orEvent_t ready, orSemaphore_t semaphore, uint64_t value) noexcept
      : ready_(ready), semaphore_(semaphore), value_(value) {}
  StreamWait(const StreamWait&) = delete;
  StreamWait& operator=(const StreamWait&) = delete;
  ~StreamWait();

  // Blocks until the tasks of the stream before `ready` are complete. Returns an empty string, or an error message if
  // they have failed.
  std::string wait_ready() const;
  // Makes the stream continue.
  void signal() const noexcept;
  // Puts the device of the stream into its error state. The next synchronizing call throws `reason`.
  void fail(const std::string& reason) const noexcept;

 private:
  orEvent_t ready_;
  orSemaphore_t semaphore_;
  uint64_t value_;
};

// The status of an operation. It changes once, from kPending to another one.
enum class OperationStatus : uint8_t {
  kPending,
  kSuccess,
  kFailed,   // The operation has failed, and the device of its stream is in its error state.
  kAborted,  // The operation was aborted on purpose. Its stream continues, and the values of its outputs are undefined.
};

// One call of a process group, from its submission until the transport has released its memory. Thread-safe.
//
// Its status and its use of memory end independently. The status is decided once, by the first of the transport, the
// watchdog (the thread that enforces timeouts) and an abort. The transport may read and write the memory after that, so
// the operation retains tensors until the transport is done.
class Operation {
 public:
  // The function that hands the operation to the transport. The progress engine calls it when the operation begins.
  using Post = std::function<void(const std::shared_ptr<Operation>&)>;

  // `post` hands the operation to the transport, which calls ProgressEngine::transport_done() once, on any thread.
  // `post` may throw instead, if the transport does not use the memory. The operation keeps `retained` until either
  // happens, and writes its progress to `flight`.
  Operation(OperationDescription description, OperationSignature signature, std::shared_ptr<FlightRecord> flight,
            Post post, std::shared_ptr<void> retained);
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  const OperationDescription& description() const noexcept { return description_; }
  const OperationSignature& signature() const noexcept { return signature_; }
  const FlightRecord& flight() const noexcept { return *flight_; }
  std::chrono::milliseconds timeout() const noexcept { return flight_->timeout; }
  std::string wait_ready() const { return stream_wait_->wait_ready(); }
  // Hands the operation to the transport, and notes the time. Called at most once. Throws the exceptions of `post`.
  void post(const std::shared_ptr<Operation>& self);
  // Returns true if post() has been called or the operation retains nothing any more.
  bool is_posted() const;

  // Decides the status, and makes the stream continue or fail. Returns false if the status was decided before.
  bool complete(OperationStatus status, const std::string& reason) noexcept;
  OperationStatus status() const;
  // Returns the reason of a failure or an abort; empty otherwise.
  std::string reason() const;
  // Blocks until the status is decided, for at most `limit`; 0 means without a limit. Returns false if it is pending.
  bool wait(std::chrono::milliseconds limit) const;

  // Sets the wait of the stream. Called once, before the operation is submitted or fails.
  void set_stream_wait(std::unique_ptr<StreamWait> stream_wait) noexcept { stream_wait_ = std::move(stream_wait); }
  // Sets the fault to inject. Called before the operation is submitted.
  void set_fault(CollectiveFault fault) noexcept { fault_ = fault; }
  CollectiveFault fault() const noexcept { return fault_; }

  // Sets the function that cancel() calls, which makes the transport release the memory early. Calls it at once if
  // cancel() has been called. The function must not call the operation. It may own what uses the memory: it is
  // destroyed before take_retained() returns.
  void set_cancel(std::function<void()> cancel);
  // Calls the function that set_cancel() has set, at most once.
  void cancel() noexcept;

  // Sets the rank that sends to a receive, before the operation is posted. source() returns it, or -1 if it is unknown.
  void set_source(int rank) { flight_->source = rank; }
  int source() const { return flight_->source; }

  // Returns the retained objects, and null from the second call on. Also releases the functions of the operation.
  std::shared_ptr<void> take_retained();

  // State of the progress engine's watchdog, guarded by the engine's mutex.
  struct WatchdogEntry {
    std::list<std::shared_ptr<Operation>>::iterator place;  // In the list of outstanding operations.
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
    std::chrono::milliseconds timeout{};
    bool is_silenced = false;  // An injected fault has lost its control messages.
  };
  WatchdogEntry& watchdog_entry() noexcept { return watchdog_entry_; }

 private:
  // Calls the function that set_cancel() has set, if any, and destroys it. The caller holds `mutex_`.
  void call_cancel() noexcept;
  // The two halves of complete().
  bool decide(OperationStatus status, const std::string& reason) noexcept;
  void signal_device() noexcept;

  const OperationDescription description_;
  const OperationSignature signature_;
  const std::shared_ptr<FlightRecord> flight_;
  std::unique_ptr<StreamWait> stream_wait_;
  CollectiveFault fault_ = CollectiveFault::kNothing;

  mutable std::mutex mutex_;
  mutable std::condition_variable decided_;
  OperationStatus status_ = OperationStatus::kPending;
  std::string reason_;
  Post post_;
  std::function<void()> cancel_;
  bool cancelled_ = false;
  std::shared_ptr<void> retained_;
  WatchdogEntry watchdog_entry_;
};

}  // namespace openreg::distributed
