// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "flight_recorder.h"
#include "openreg.h"

namespace openreg::distributed {

class Operation;

// What an error says of an operation. The text is made only when there is an error.
struct Description {
  const char* name = "";                     // as torch.distributed calls it; a literal
  uint64_t sequence = 0;                     // number of the call in its group, from 1 on
  std::string dtype;                         // of the first tensor
  std::vector<int64_t> sizes;                // of the first tensor
  size_t tensors = 0;                        // of the call
  uint64_t bytes = 0;                        // of all of them
  const char* reduction = nullptr;           // "SUM"; a literal, null where nothing is reduced
  int root = -1;                             // of a collective that has one
  int peer = -1;                             // of a point-to-point call; -1: none or any
  std::shared_ptr<const std::string> group;  // "rank 0 of 2 in the group ..."

  // "all_reduce number 7 (float32 [4, 4], 64 bytes, SUM)".
  std::string call() const;
  // The same, and "on rank 0 of 2 in the group 'default_pg'".
  std::string text() const;
};

// What the ranks of a group have to give alike in a collective, or two ranks in a message.
struct Terms {
  enum class Kind : uint8_t { kCollective, kSend, kReceive };

  Kind kind = Kind::kCollective;
  uint64_t number = 0;             // of a collective, among those of its group, from 0 on
  uint64_t contract = 0;           // of a collective: a hash of what all ranks give alike
  std::vector<uint64_t> sent;      // bytes for each rank, or one number for every one
  std::vector<uint64_t> expected;  // bytes from each rank, or one number for every one
  int peer = -1;                   // of a message; -1: any
  int tag = 0;                     // of a message

  uint64_t sent_to(int rank) const { return sent.size() == 1 ? sent[0] : sent[static_cast<size_t>(rank)]; }
  uint64_t expected_from(int rank) const {
    return expected.size() == 1 ? expected[0] : expected[static_cast<size_t>(rank)];
  }
};

// What a test has ordered for an operation.
enum class Injected : uint8_t {
  kNothing,
  kDelayed,  // it begins a second late
  kDropped,  // it gets lost, and all later ones of its group
  kKilled,   // the process ends instead
};

// Where an operation touches the device: a stream that has come to `ready`, and then waits for the semaphore to reach
// `value`. Owns the event.
class Ticket {
 public:
  Ticket(orEvent_t ready, orSemaphore_t semaphore, uint64_t value) noexcept
      : ready_(ready), semaphore_(semaphore), value_(value) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket();

  // Blocks the calling thread until the stream has come to `ready`. Gives the reason if it never will.
  std::string wait_ready() const;
  // Lets the stream go on.
  void signal() const noexcept;
  // Puts the device of the stream into its error state, with a reason that the next synchronising call raises.
  void fail(const std::string& reason) const noexcept;

 private:
  orEvent_t ready_;
  orSemaphore_t semaphore_;
  uint64_t value_;
};

enum class Outcome : uint8_t {
  kPending,
  kSuccess,
  kFailed,   // the device of the stream fails, too
  kAborted,  // on purpose: the stream goes on, what the operation should have written is undefined
};

// One call of a process group, from its submission until the transport has let go of its memory. Thread-safe.
//
// Two things end independently. The *outcome* is decided once, by whoever comes first: the transport, the watchdog, an
// abort. The *transport* may still read and write the memory after that, so what is held stays until it lets go.
class Operation {
 public:
  using Post = std::function<void(const std::shared_ptr<Operation>&)>;

  // `post` hands the operation to the transport, which calls Progress::transport_done() once, on any thread; it may
  // throw instead. `held` is whatever has to live until then. How far it comes is noted in `flight`.
  Operation(Description description, Terms terms, std::shared_ptr<Flight> flight, std::unique_ptr<Ticket> ticket,
            Post post, std::shared_ptr<void> held);
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  const Description& description() const noexcept { return description_; }
  const Terms& terms() const noexcept { return terms_; }
  const Flight& flight() const noexcept { return *flight_; }
  std::chrono::milliseconds timeout() const noexcept { return flight_->timeout; }
  std::string wait_ready() const { return ticket_->wait_ready(); }
  void post(const std::shared_ptr<Operation>& self);
  bool is_posted() const;

  // Decides the outcome and lets the stream go on or fail. False if it was decided before.
  bool settle(Outcome outcome, const std::string& reason) noexcept;
  // The two halves of it, for who has something to do before the device knows; the second after a first that was true.
  bool decide(Outcome outcome, const std::string& reason) noexcept;
  void tell_device() noexcept;
  Outcome outcome() const;
  // Of an outcome other than success; empty otherwise.
  std::string reason() const;
  // Blocks the calling thread until the outcome is decided, or for so long; 0: without a limit. False: not decided.
  bool wait(std::chrono::milliseconds limit) const;

  // Before it is submitted.
  void set_injected(Injected injected) noexcept { injected_ = injected; }
  Injected injected() const noexcept { return injected_; }

  // How to make the transport let go early, where it can: called once, when the operation fails otherwise.
  void set_cancel(std::function<void()> cancel);
  void cancel() noexcept;

  // From whom a message comes, before it is posted; -1 while that is open.
  void set_source(int rank) { flight_->source = rank; }
  int source() const { return flight_->source; }

  // What was held; empty from then on.
  std::shared_ptr<void> take_held();

  // The notes of Progress, under its lock.
  struct Watched {
    std::list<std::shared_ptr<Operation>>::iterator place;  // among what is outstanding
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
    std::chrono::milliseconds timeout{};
    bool is_silenced = false;  // an injected fault has lost its messages
  };
  Watched& watched() noexcept { return watched_; }

 private:
  const Description description_;
  const Terms terms_;
  const std::shared_ptr<Flight> flight_;
  const std::unique_ptr<Ticket> ticket_;
  Injected injected_ = Injected::kNothing;

  mutable std::mutex mutex_;
  mutable std::condition_variable decided_;
  Outcome outcome_ = Outcome::kPending;
  std::string reason_;
  Post post_;
  std::function<void()> cancel_;
  bool cancelled_ = false;
  std::shared_ptr<void> held_;
  Watched watched_;
};

}  // namespace openreg::distributed
