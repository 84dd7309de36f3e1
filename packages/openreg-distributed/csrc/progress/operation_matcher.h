// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control_message.h"
#include "operation.h"

namespace openreg::distributed {

// What messages call a rank.
std::string rank_named(int rank);

// Which operations may begin: what this rank has come to, and what the others have announced. A collective begins when
// all ranks have announced theirs with its number, a receive when a message for it is announced, a send at once.
// Whoever gives another size or makes another call is found before anything moves.
//
// Knows no thread and no transport. Not thread-safe.
class Agreement {
 public:
  Agreement(int rank, int size);

  // What is to be told to a rank of an operation; false where it is none of its business.
  bool announce(const Operation& operation, int peer, Announcement& announcement) const;

  // The device has come to the operation. Collectives come in the order of their numbers.
  void ready(std::shared_ptr<Operation> operation);
  // The device has come to an operation that never begins, because that was ordered.
  void hold_back(std::shared_ptr<Operation> operation);
  // Another rank has announced a collective or a message. Gives what is wrong with that, or nothing.
  std::string hear(int peer, Announcement announcement);
  // Another rank announces nothing any more.
  void lose(int peer, std::string reason);
  // The reasons of all that are lost.
  std::string lost() const;

  struct Next {
    std::shared_ptr<Operation> operation;
    std::string problem;  // why it must not begin; empty: it may
  };
  // The next operation whose turn it is, each once, in the order that the transport needs. Without one: null.
  Next next();

  // Whatever is ready and has not come out, when nothing is to begin any more.
  std::vector<std::shared_ptr<Operation>> drain();

  // Who keeps an operation that is ready from beginning or from ending, for an error.
  std::string missing(const Operation& operation) const;

 private:
  struct Message {
    uint64_t arrival;
    Announcement announcement;
  };
  struct Peer {
    std::deque<Announcement> collectives;         // the first has the number `begun_`
    uint64_t announced = 0;                       // collectives so far
    std::map<int, std::deque<Message>> messages;  // by tag
    std::string lost;                             // why it announces nothing any more
  };

  bool is_other(int rank) const noexcept { return rank != rank_; }
  std::string disagreement(const Operation& operation) const;
  // Brings an announced message and a receive together, if there is one.
  bool match(const std::shared_ptr<Operation>& operation);
  Peer* first_with_message(const Operation& operation);

  const int rank_;
  std::vector<Peer> peers_;
  std::deque<std::shared_ptr<Operation>> collectives_;  // ready, not begun; the first has the number `begun_`
  uint64_t begun_ = 0;
  std::list<std::shared_ptr<Operation>> receives_;  // ready, no message announced
  std::deque<Next> matched_;
  std::vector<std::shared_ptr<Operation>> held_back_;
  uint64_t arrivals_ = 0;
};

}  // namespace openreg::distributed
