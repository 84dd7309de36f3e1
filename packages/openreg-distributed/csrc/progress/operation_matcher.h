// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "progress/control_message.h"
#include "progress/operation.h"

namespace openreg::distributed {

// Returns "rank 3", as error messages name a rank.
std::string rank_named(int rank);

// Decides which operations may start, from what this rank's device has reached and what the other ranks have announced.
// A collective starts when all ranks have announced the one with its number, a receive when data for it is announced, a
// send at once. A mismatch of signatures is found before data moves (source: message matching of MPI).
//
// Uses neither threads nor the transport. Not thread-safe.
class OperationMatcher {
 public:
  OperationMatcher(int rank, int size);

  // Writes what `peer` must know of an operation to `message`. Returns false if the operation does not concern `peer`.
  bool make_control_message(const Operation& operation, int peer, ControlMessage& message) const;

  // Adds an operation that the device has reached. Collectives are added in the order of their numbers.
  void ready(std::shared_ptr<Operation> operation);
  // Keeps an operation that an injected fault prevents from starting.
  void suppress(std::shared_ptr<Operation> operation);
  // Adds what a peer has announced. Returns an error message, or an empty string.
  std::string on_message(int peer, ControlMessage message);
  // Records that a peer announces nothing more.
  void on_peer_lost(int peer, std::string reason);
  // Returns the reasons of all lost peers.
  std::string lost() const;

  struct Next {
    std::shared_ptr<Operation> operation;
    std::string problem;  // The reason why the operation must not start; empty if it may.
  };
  // Returns the next operation to start, each once, in the order that the transport needs. The operation is null if
  // there is none.
  Next next();

  // Returns all operations that next() has not returned. Used when no operation is to start any more.
  std::vector<std::shared_ptr<Operation>> drain();

  // Returns, as text for an error message, which ranks an operation waits for.
  std::string missing_ranks(const Operation& operation) const;

 private:
  struct Message {
    uint64_t arrival;
    ControlMessage message;
  };
  struct Peer {
    std::deque<ControlMessage> collectives;       // The first one has the number `begun_`.
    uint64_t announced = 0;                       // The number of collectives so far.
    std::map<int, std::deque<Message>> messages;  // By tag.
    std::string lost;                             // The reason why nothing follows; empty if something may.
  };

  bool is_other(int rank) const noexcept { return rank != rank_; }
  std::string mismatch(const Operation& operation) const;
  // Pairs a receive with an announced message. Returns false if there is none.
  bool match(const std::shared_ptr<Operation>& operation);
  Peer* first_with_message(const Operation& operation);

  const int rank_;
  std::vector<Peer> peers_;
  std::deque<std::shared_ptr<Operation>> collectives_;  // Ready and not started; the first has the number `begun_`.
  uint64_t begun_ = 0;
  std::list<std::shared_ptr<Operation>> receives_;  // Ready, and no data is announced.
  std::deque<Next> matched_;
  std::vector<std::shared_ptr<Operation>> suppressed_;
  uint64_t arrivals_ = 0;
};

}  // namespace openreg::distributed
