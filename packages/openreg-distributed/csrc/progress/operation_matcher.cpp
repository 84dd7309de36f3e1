// SPDX-License-Identifier: BSD-3-Clause
#include "operation_matcher.h"

#include <algorithm>
#include <utility>

namespace openreg::distributed {

namespace {

constexpr const char* kSameCalls =
    "; all ranks have to make the same collective calls, in the same order and with the same sizes";

}  // namespace

std::string rank_named(int rank) {
  return "rank " + std::to_string(rank);
}

Agreement::Agreement(int rank, int size) : rank_(rank), peers_(static_cast<size_t>(size)) {}

bool Agreement::announce(const Operation& operation, int peer, Announcement& announcement) const {
  const Terms& terms = operation.terms();
  if (terms.kind == Terms::Kind::kReceive || (terms.kind == Terms::Kind::kSend && terms.peer != peer)) {
    return false;
  }
  const bool collective = terms.kind == Terms::Kind::kCollective;
  announcement.kind = collective ? Announcement::Kind::kCollective : Announcement::Kind::kMessage;
  announcement.number = terms.number;
  announcement.contract = terms.contract;
  announcement.sent = terms.sent_to(peer);
  announcement.expected = collective ? terms.expected_from(peer) : 0;
  announcement.tag = terms.tag;
  announcement.text = operation.description().call();
  return true;
}

void Agreement::ready(std::shared_ptr<Operation> operation) {
  switch (operation->terms().kind) {
    case Terms::Kind::kCollective:
      collectives_.push_back(std::move(operation));
      break;
    case Terms::Kind::kSend:
      matched_.push_back({std::move(operation), {}});
      break;
    case Terms::Kind::kReceive:
      if (!match(operation)) {
        receives_.push_back(std::move(operation));
      }
      break;
  }
}

void Agreement::hold_back(std::shared_ptr<Operation> operation) {
  held_back_.push_back(std::move(operation));
}

std::string Agreement::hear(int peer, Announcement announcement) {
  Peer& from = peers_[static_cast<size_t>(peer)];
  if (announcement.kind == Announcement::Kind::kMessage) {
    from.messages[announcement.tag].push_back({arrivals_++, std::move(announcement)});
    const auto taken = std::find_if(receives_.begin(), receives_.end(), [&](const auto& one) { return match(one); });
    if (taken != receives_.end()) {
      receives_.erase(taken);
    }
    return {};
  }
  if (announcement.number != from.announced) {
    return rank_named(peer) + " announced its collective " + std::to_string(announcement.number) + " where its " +
           std::to_string(from.announced) + " comes next: both run the same release of openreg-distributed?";
  }
  ++from.announced;
  from.collectives.push_back(std::move(announcement));
  return {};
}

void Agreement::lose(int peer, std::string reason) {
  Peer& from = peers_[static_cast<size_t>(peer)];
  if (!from.lost.empty()) {
    return;
  }
  from.lost = std::move(reason);
  receives_.remove_if([&](const std::shared_ptr<Operation>& one) { return match(one); });
}

std::string Agreement::lost() const {
  std::string reasons;
  for (const Peer& peer : peers_) {
    if (!peer.lost.empty()) {
      reasons += (reasons.empty() ? "" : ", ") + peer.lost;
    }
  }
  return reasons;
}

// A message from a rank that is lost counts as matched, with a problem.
bool Agreement::match(const std::shared_ptr<Operation>& operation) {
  const Terms& terms = operation->terms();
  Peer* const from = first_with_message(*operation);
  if (from == nullptr) {
    if (terms.peer >= 0 && !peers_[static_cast<size_t>(terms.peer)].lost.empty()) {
      matched_.push_back({operation, peers_[static_cast<size_t>(terms.peer)].lost});
      return true;
    }
    return false;
  }
  const int source = static_cast<int>(from - peers_.data());
  const auto queue = from->messages.find(terms.tag);
  const Announcement message = std::move(queue->second.front().announcement);
  queue->second.pop_front();
  if (queue->second.empty()) {
    from->messages.erase(queue);
  }
  operation->set_source(source);
  std::string problem;
  if (message.sent != terms.expected_from(source)) {
    problem = rank_named(source) + " sends " + std::to_string(message.sent) + " bytes, by " + message.text +
              ", and the tensor to receive them has " + std::to_string(terms.expected_from(source)) +
              "; give a tensor of the same size";
  }
  matched_.push_back({operation, std::move(problem)});
  return true;
}

Agreement::Peer* Agreement::first_with_message(const Operation& operation) {
  const Terms& terms = operation.terms();
  Peer* first = nullptr;
  uint64_t arrival = 0;
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (terms.peer >= 0 && terms.peer != static_cast<int>(i)) {
      continue;
    }
    const auto queue = peers_[i].messages.find(terms.tag);
    if (queue != peers_[i].messages.end() && (first == nullptr || queue->second.front().arrival < arrival)) {
      first = &peers_[i];
      arrival = queue->second.front().arrival;
    }
  }
  return first;
}

Agreement::Next Agreement::next() {
  if (!matched_.empty()) {
    Next next = std::move(matched_.front());
    matched_.pop_front();
    return next;
  }
  if (collectives_.empty()) {
    return {};
  }
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (is_other(static_cast<int>(i)) && peers_[i].collectives.empty()) {
      if (peers_[i].lost.empty()) {
        return {};
      }
      std::shared_ptr<Operation> operation = std::move(collectives_.front());
      collectives_.pop_front();
      return {std::move(operation), peers_[i].lost};
    }
  }
  std::string problem = disagreement(*collectives_.front());
  Next next{std::move(collectives_.front()), std::move(problem)};
  collectives_.pop_front();
  ++begun_;
  for (Peer& peer : peers_) {
    if (!peer.collectives.empty()) {
      peer.collectives.pop_front();
    }
  }
  return next;
}

std::vector<std::shared_ptr<Operation>> Agreement::drain() {
  std::vector<std::shared_ptr<Operation>> all = std::exchange(held_back_, {});
  all.insert(all.end(), collectives_.begin(), collectives_.end());
  all.insert(all.end(), receives_.begin(), receives_.end());
  for (Next& next : matched_) {
    all.push_back(std::move(next.operation));
  }
  collectives_.clear();
  receives_.clear();
  matched_.clear();
  return all;
}

std::string Agreement::disagreement(const Operation& operation) const {
  const Terms& terms = operation.terms();
  for (size_t i = 0; i < peers_.size(); ++i) {
    const int peer = static_cast<int>(i);
    if (!is_other(peer)) {
      continue;
    }
    const Announcement& other = peers_[i].collectives.front();
    if (other.contract != terms.contract) {
      return rank_named(peer) + " called " + other.text + " instead" + kSameCalls;
    }
    if (other.sent != terms.expected_from(peer)) {
      return rank_named(peer) + " sends " + std::to_string(other.sent) + " bytes here, by " + other.text +
             ", and this rank expects " + std::to_string(terms.expected_from(peer)) + kSameCalls;
    }
    if (other.expected != terms.sent_to(peer)) {
      return rank_named(peer) + " expects " + std::to_string(other.expected) + " bytes of this rank, by " + other.text +
             ", which sends " + std::to_string(terms.sent_to(peer)) + kSameCalls;
    }
  }
  return {};
}

std::string Agreement::missing(const Operation& operation) const {
  const Terms& terms = operation.terms();
  const std::string peer = rank_named(terms.peer);
  switch (terms.kind) {
    case Terms::Kind::kSend:
      return peer + " has not received it";
    case Terms::Kind::kReceive:
      if (operation.source() >= 0) {
        return rank_named(operation.source()) + " has begun to send it";
      }
      return (terms.peer < 0 ? "no rank sends" : peer + " sends no") + std::string(terms.peer < 0 ? " a" : "") +
             " message with tag " + std::to_string(terms.tag);
    case Terms::Kind::kCollective:
      break;
  }
  std::string ranks;
  for (size_t i = 0; i < peers_.size(); ++i) {
    const uint64_t announced = peers_[i].announced;
    if (is_other(static_cast<int>(i)) && announced <= terms.number) {
      ranks += (ranks.empty() ? "" : ", ") + rank_named(static_cast<int>(i)) + " has made " +
               std::to_string(announced) + " collective calls";
    }
  }
  if (ranks.empty()) {
    return "all ranks have made this call";
  }
  return ranks + " in this group, and this is number " + std::to_string(terms.number + 1) + " of them";
}

}  // namespace openreg::distributed
