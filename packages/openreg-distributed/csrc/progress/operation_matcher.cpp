// SPDX-License-Identifier: BSD-3-Clause
#include "progress/operation_matcher.h"

#include <iterator>
#include <utility>

namespace openreg::distributed {

namespace {

constexpr const char* kSameCalls =
    "; all ranks have to make the same collective calls, in the same order and with the same sizes";

}  // namespace

std::string rank_named(int rank) {
  return "rank " + std::to_string(rank);
}

OperationMatcher::OperationMatcher(int rank, int size) : rank_(rank), peers_(static_cast<size_t>(size)) {}

bool OperationMatcher::make_control_message(const Operation& operation, int peer, ControlMessage& message) {
  const OperationSignature& signature = operation.signature();
  if (signature.kind == OperationSignature::Kind::kReceive ||
      (signature.kind == OperationSignature::Kind::kSend && signature.peer != peer)) {
    return false;
  }
  const bool collective = signature.kind == OperationSignature::Kind::kCollective;
  message.kind = collective ? ControlMessage::Kind::kCollective : ControlMessage::Kind::kMessage;
  message.number = signature.number;
  message.fingerprint = signature.fingerprint;
  message.sent = signature.sent_to(peer);
  message.expected = collective ? signature.expected_from(peer) : 0;
  message.tag = signature.tag;
  message.text = operation.description().call();
  return true;
}

void OperationMatcher::ready(std::shared_ptr<Operation> operation) {
  switch (operation->signature().kind) {
    case OperationSignature::Kind::kCollective:
      collectives_.push_back(std::move(operation));
      break;
    case OperationSignature::Kind::kSend:
      matched_.push_back({std::move(operation), {}});
      break;
    case OperationSignature::Kind::kReceive:
      if (!match(operation)) {
        receives_.push_back(std::move(operation));
      }
      break;
  }
}

void OperationMatcher::suppress(std::shared_ptr<Operation> operation) {
  suppressed_.push_back(std::move(operation));
}

std::string OperationMatcher::on_message(int peer, ControlMessage message) {
  Peer& from = peers_[static_cast<size_t>(peer)];
  if (message.kind == ControlMessage::Kind::kMessage) {
    from.messages[message.tag].push_back({arrivals_++, std::move(message)});
    for (auto receive = receives_.begin(); receive != receives_.end(); ++receive) {
      if (match(*receive)) {
        receives_.erase(receive);
        break;
      }
    }
    return {};
  }
  if (message.number != from.announced) {
    return rank_named(peer) + " announced its collective " + std::to_string(message.number) + " where its " +
           std::to_string(from.announced) +
           " comes next; install the same release of openreg-distributed for both ranks";
  }
  ++from.announced;
  from.collectives.push_back(std::move(message));
  return {};
}

void OperationMatcher::on_peer_lost(int peer, std::string reason) {
  Peer& from = peers_[static_cast<size_t>(peer)];
  if (!from.lost.empty()) {
    return;
  }
  from.lost = std::move(reason);
  for (auto receive = receives_.begin(); receive != receives_.end();) {
    receive = match(*receive) ? receives_.erase(receive) : std::next(receive);
  }
}

std::string OperationMatcher::lost() const {
  std::string reasons;
  for (const Peer& peer : peers_) {
    if (!peer.lost.empty()) {
      reasons += (reasons.empty() ? "" : ", ") + peer.lost;
    }
  }
  return reasons;
}

bool OperationMatcher::match(const std::shared_ptr<Operation>& operation) {
  const OperationSignature& signature = operation->signature();
  Peer* const from = first_with_message(*operation);
  if (from == nullptr) {
    if (signature.peer >= 0 && !peers_[static_cast<size_t>(signature.peer)].lost.empty()) {
      matched_.push_back({operation, peers_[static_cast<size_t>(signature.peer)].lost});
      return true;
    }
    return false;
  }
  const int source = static_cast<int>(from - peers_.data());
  const auto queue = from->messages.find(signature.tag);
  const ControlMessage message = std::move(queue->second.front().message);
  queue->second.pop_front();
  if (queue->second.empty()) {
    from->messages.erase(queue);
  }
  operation->set_source(source);
  std::string problem;
  if (message.sent != signature.expected_from(source)) {
    problem = rank_named(source) + " sends " + std::to_string(message.sent) + " bytes, by " + message.text +
              ", and the tensor to receive them has " + std::to_string(signature.expected_from(source)) +
              "; give a tensor of the same size";
  }
  matched_.push_back({operation, std::move(problem)});
  return true;
}

OperationMatcher::Peer* OperationMatcher::first_with_message(const Operation& operation) {
  const OperationSignature& signature = operation.signature();
  Peer* first = nullptr;
  uint64_t arrival = 0;
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (signature.peer >= 0 && signature.peer != static_cast<int>(i)) {
      continue;
    }
    const auto queue = peers_[i].messages.find(signature.tag);
    if (queue != peers_[i].messages.end() && (first == nullptr || queue->second.front().arrival < arrival)) {
      first = &peers_[i];
      arrival = queue->second.front().arrival;
    }
  }
  return first;
}

OperationMatcher::Next OperationMatcher::next() {
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
  std::string problem = mismatch(*collectives_.front());
  Next next{std::move(collectives_.front()), std::move(problem)};
  collectives_.pop_front();
  for (Peer& peer : peers_) {
    if (!peer.collectives.empty()) {
      peer.collectives.pop_front();
    }
  }
  return next;
}

std::vector<std::shared_ptr<Operation>> OperationMatcher::drain() {
  std::vector<std::shared_ptr<Operation>> all = std::exchange(suppressed_, {});
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

std::string OperationMatcher::mismatch(const Operation& operation) const {
  const OperationSignature& signature = operation.signature();
  for (size_t i = 0; i < peers_.size(); ++i) {
    const int peer = static_cast<int>(i);
    if (!is_other(peer)) {
      continue;
    }
    const ControlMessage& other = peers_[i].collectives.front();
    if (other.fingerprint != signature.fingerprint) {
      return rank_named(peer) + " called " + other.text + " instead" + kSameCalls;
    }
    if (other.sent != signature.expected_from(peer)) {
      return rank_named(peer) + " sends " + std::to_string(other.sent) + " bytes here, by " + other.text +
             ", and this rank expects " + std::to_string(signature.expected_from(peer)) + kSameCalls;
    }
    if (other.expected != signature.sent_to(peer)) {
      return rank_named(peer) + " expects " + std::to_string(other.expected) + " bytes of this rank, by " + other.text +
             ", which sends " + std::to_string(signature.sent_to(peer)) + kSameCalls;
    }
  }
  return {};
}

std::string OperationMatcher::missing_ranks(const Operation& operation) const {
  const OperationSignature& signature = operation.signature();
  switch (signature.kind) {
    case OperationSignature::Kind::kSend:
      return rank_named(signature.peer) + " has not received it";
    case OperationSignature::Kind::kReceive:
      if (operation.source() >= 0) {
        return rank_named(operation.source()) + " has begun to send it";
      }
      if (signature.peer < 0) {
        return "no rank sends a message with tag " + std::to_string(signature.tag);
      }
      return rank_named(signature.peer) + " sends no message with tag " + std::to_string(signature.tag);
    case OperationSignature::Kind::kCollective:
      break;
  }
  std::string ranks;
  for (size_t i = 0; i < peers_.size(); ++i) {
    const uint64_t announced = peers_[i].announced;
    if (is_other(static_cast<int>(i)) && announced <= signature.number) {
      ranks += (ranks.empty() ? "" : ", ") + rank_named(static_cast<int>(i)) + " has made " +
               std::to_string(announced) + " collective calls";
    }
  }
  if (ranks.empty()) {
    return "all ranks have made this call";
  }
  return ranks + " in this group, and this is number " + std::to_string(signature.number + 1) + " of them";
}

}  // namespace openreg::distributed
