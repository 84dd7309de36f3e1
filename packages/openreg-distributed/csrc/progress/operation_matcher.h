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

// Decides which operations of a process group (its calls) may start. An operation is ready when the device of this rank
// has executed the tasks before it. A ready collective starts when all ranks have announced their collective of the
// same number, a ready receive when a message for it is announced, and a ready send at once. The signatures of a
// collective, and of a receive with its message, are compared before the operation starts, so a mismatch is found
// before it moves data. A send starts without a comparison (source: message matching of MPI).
//
// Uses neither threads nor the transport (the c10d backend that moves bytes between ranks, Gloo). Not thread-safe.
class OperationMatcher {
 public:
  OperationMatcher(int rank, int size);

  // Writes the control message about an operation for `peer` to `message`. Returns false if `peer` needs none.
  static bool make_control_message(const Operation& operation, int peer, ControlMessage& message);

  // Adds an operation that is ready. Collectives are added in the order of their numbers.
  void ready(std::shared_ptr<Operation> operation);
  // Adds an operation that an injected fault prevents from starting. Only drain() returns it.
  void suppress(std::shared_ptr<Operation> operation);
  // Adds a peer's control message about an operation. Returns an error message, or an empty string.
  std::string on_message(int peer, ControlMessage message);
  // Marks a peer as lost: it announces nothing more.
  void on_peer_lost(int peer, std::string reason);
  // Returns the reasons of all lost peers, separated by commas. Empty if no peer is lost.
  std::string lost() const;

  // An operation that leaves the matcher.
  struct Next {
    std::shared_ptr<Operation> operation;
    std::string problem;  // The reason why the operation must not start; empty if it may.
  };
  // Returns the next operation that leaves the matcher, each once. Sends and receives come first, in the order in which
  // they were matched. Collectives follow in the order of their numbers, because the transport pairs the collectives of
  // all ranks by their order. The operation is null if there is none.
  Next next();

  // Returns all operations that next() has not returned, and forgets them. Called after the group has failed.
  std::vector<std::shared_ptr<Operation>> drain();

  // Returns text for an error message that names the ranks for which an operation waits.
  std::string missing_ranks(const Operation& operation) const;

 private:
  // A message that a peer has announced and no receive has taken.
  struct ArrivedMessage {
    uint64_t arrival;  // The index among the messages of all peers.
    ControlMessage message;
  };
  // The control messages of one other rank.
  struct Peer {
    std::deque<ControlMessage> collectives;  // Announced and not started. The first is that of the next to start.
    uint64_t announced = 0;                  // The number of collectives so far.
    std::map<int, std::deque<ArrivedMessage>> messages;  // By tag.
    std::string lost;                                    // The reason why nothing follows; empty if something may.
  };

  bool is_other(int rank) const noexcept { return rank != rank_; }
  // Compares a collective that all peers have announced. Returns an error message, or an empty string if they match.
  std::string mismatch(const Operation& operation) const;
  // Pairs a receive with an announced message. Returns false if there is none. Also returns true for a receive from a
  // lost peer, which next() then returns with a problem.
  bool match(const std::shared_ptr<Operation>& operation);
  // Returns the peer whose message for a receive has arrived first, or null if there is no message.
  Peer* first_with_message(const Operation& operation);

  const int rank_;
  std::vector<Peer> peers_;
  std::deque<std::shared_ptr<Operation>> collectives_;  // Ready and not started; the first is the next to start.
  std::list<std::shared_ptr<Operation>> receives_;      // Ready, and no message for them is announced.
  std::deque<Next> matched_;                            // Sends and receives that next() returns.
  std::vector<std::shared_ptr<Operation>> suppressed_;
  uint64_t arrivals_ = 0;  // The number of messages so far.
};

}  // namespace openreg::distributed
