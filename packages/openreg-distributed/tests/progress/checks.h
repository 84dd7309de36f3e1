// SPDX-License-Identifier: BSD-3-Clause
// The parts of the progress, each alone.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fake_network.h"
#include "progress/control_message.h"
#include "progress/flight_recorder.h"
#include "progress/operation_matcher.h"
#include "progress/threads.h"

namespace progress_test {

using distributed::ControlMessage;
using distributed::OperationMatcher;
using distributed::OperationSignature;

// An operation that no device knows of.
inline std::shared_ptr<distributed::Operation> operation_of(OperationSignature signature, const char* name = "add") {
  distributed::OperationDescription description;
  description.name = name;
  description.sequence = 1;
  description.group = std::make_shared<const std::string>("a rank");
  return std::make_shared<distributed::Operation>(std::move(description), std::move(signature),
                                                  std::make_shared<distributed::FlightRecord>(), nullptr, nullptr);
}

inline OperationSignature collective(uint64_t number, uint64_t bytes, uint64_t fingerprint = 1) {
  OperationSignature signature;
  signature.number = number;
  signature.fingerprint = fingerprint;
  signature.sent = signature.expected = {bytes};
  return signature;
}

inline OperationSignature message(OperationSignature::Kind kind, int peer, int tag, uint64_t bytes) {
  OperationSignature signature = collective(0, bytes);
  signature.kind = kind;
  signature.peer = peer;
  signature.tag = tag;
  return signature;
}

inline ControlMessage announced(const OperationSignature& signature, int to) {
  ControlMessage message;
  CHECK(OperationMatcher::make_control_message(*operation_of(signature), to, message));
  return message;
}

inline void control_messages_are_encoded_into_as_few_strings_as_they_fit() {
  std::vector<ControlMessage> sent;
  for (uint64_t i = 0; i < 200; ++i) {
    sent.push_back({i % 2 == 0 ? ControlMessage::Kind::kCollective : ControlMessage::Kind::kMessage, i, ~i, i << 40,
                    i * 3, static_cast<int32_t>(i), std::string(i, 'x')});
  }
  sent.push_back({ControlMessage::Kind::kFailure, 0, 0, 0, 0, 0, std::string(10'000, 'y')});
  std::vector<ControlMessage> decoded;
  const std::vector<std::string> messages = distributed::encode(sent);
  for (const std::string& message : messages) {
    CHECK(message.size() <= distributed::kLongestMessage);
    CHECK(distributed::decode(message + "whatever stands behind it", decoded));
  }
  CHECK(messages.size() > 1 && messages.size() < 20 && decoded.size() == sent.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    CHECK(decoded[i].kind == sent[i].kind && decoded[i].number == sent[i].number && decoded[i].tag == sent[i].tag);
    CHECK(decoded[i].fingerprint == sent[i].fingerprint && decoded[i].sent == sent[i].sent);
    CHECK(decoded[i].expected == sent[i].expected && sent[i].text.starts_with(decoded[i].text));
    CHECK(decoded[i].text == sent[i].text || sent[i].text.size() == 10'000);
  }
}

inline void a_string_that_is_no_control_message_is_rejected() {
  const std::string good = distributed::encode({{ControlMessage::Kind::kCollective, 1, 2, 3, 4, 5, "text"}}).front();
  std::vector<ControlMessage> decoded;
  for (size_t size = 0; size < good.size(); ++size) {
    CHECK(!distributed::decode(good.substr(0, size), decoded));
  }
  for (size_t i = 0; i < good.size(); ++i) {
    std::string other = good;
    other[i] = static_cast<char>(other[i] ^ 0x7F);
    decoded.clear();
    distributed::decode(other, decoded);  // Decodes to another message, or to none, and reads no byte outside.
  }
}

inline void a_collective_begins_when_all_have_announced_it() {
  OperationMatcher matcher(0, 3);
  const auto first = operation_of(collective(0, 8));
  const auto second = operation_of(collective(1, 8));
  matcher.ready(first);
  matcher.ready(second);
  CHECK(matcher.next().operation == nullptr);
  for (const int peer : {2, 1}) {
    CHECK(matcher.next().operation == nullptr);
    CHECK(matcher.missing_ranks(*first).find("rank 1 has made 0") != std::string::npos);
    CHECK(matcher.on_message(peer, announced(collective(0, 8), 0)).empty());
  }
  const OperationMatcher::Next next = matcher.next();
  CHECK(next.operation == first && next.problem.empty());
  CHECK(matcher.next().operation == nullptr);
  CHECK(matcher.missing_ranks(*second).find("rank 2 has made 1") != std::string::npos);
  CHECK(!matcher.on_message(1, announced(collective(2, 8), 0)).empty());  // it has left one out
}

inline void who_gives_something_else_is_named() {
  const std::pair<OperationSignature, const char*> others[] = {{collective(0, 16), "sends 16 bytes"},
                                                               {collective(0, 8, 2), "called add number 1 instead"}};
  for (const auto& [signature, said] : others) {
    OperationMatcher matcher(1, 2);
    matcher.ready(operation_of(collective(0, 8)));
    CHECK(matcher.on_message(0, announced(signature, 1)).empty());
    CHECK(matcher.next().problem.find(said) != std::string::npos);
  }
  OperationMatcher matcher(1, 2);
  OperationSignature mine = collective(0, 0);
  mine.sent = {4, 0};  // 4 bytes for rank 0, which expects 12
  OperationSignature theirs = collective(0, 0);
  theirs.expected = {0, 12};
  matcher.ready(operation_of(mine));
  CHECK(matcher.on_message(0, announced(theirs, 1)).empty());
  CHECK(matcher.next().problem.find("expects 12 bytes of this rank") != std::string::npos);
}

inline void messages_are_received_in_the_order_of_their_tag() {
  OperationMatcher matcher(0, 3);
  const auto announce = [&](int from, int tag, uint64_t bytes) {
    CHECK(matcher.on_message(from, announced(message(OperationSignature::Kind::kSend, 0, tag, bytes), 0)).empty());
  };
  const auto receive = [&](int from, int tag, uint64_t bytes) {
    auto operation = operation_of(message(OperationSignature::Kind::kReceive, from, tag, bytes), "receive");
    matcher.ready(operation);
    return operation;
  };
  announce(2, 5, 10);
  announce(1, 5, 20);
  announce(2, 5, 30);
  announce(2, 6, 40);
  const auto of_tag_6 = receive(2, 6, 40);
  const auto of_any = receive(-1, 5, 10);  // what was announced first
  const auto of_rank_2 = receive(2, 5, 30);
  const auto too_small = receive(1, 5, 19);
  const auto not_there = receive(1, 5, 50);
  for (const auto& [operation, source] : {std::pair(of_tag_6, 2), {of_any, 2}, {of_rank_2, 2}}) {
    const OperationMatcher::Next next = matcher.next();
    CHECK(next.operation == operation && next.problem.empty() && operation->source() == source);
  }
  CHECK(matcher.next().problem.find("rank 1 sends 20 bytes") != std::string::npos);
  CHECK(matcher.next().operation == nullptr && too_small->source() == 1);
  CHECK(matcher.missing_ranks(*not_there).find("rank 1 sends no message with tag 5") != std::string::npos);
  matcher.on_peer_lost(1, "rank 1 has ended");
  const OperationMatcher::Next lost = matcher.next();
  CHECK(lost.operation == not_there && lost.problem == "rank 1 has ended");
}

inline void a_rank_that_is_lost_ends_what_needs_it() {
  OperationMatcher matcher(0, 2);
  CHECK(matcher.on_message(1, announced(collective(0, 8), 0)).empty());
  matcher.on_peer_lost(1, "rank 1 has ended");
  matcher.ready(operation_of(collective(0, 8)));
  CHECK(matcher.next().problem.empty());  // it was announced before
  matcher.ready(operation_of(collective(1, 8)));
  CHECK(matcher.next().problem == "rank 1 has ended");
  matcher.ready(operation_of(message(OperationSignature::Kind::kReceive, 1, 0, 8)));
  CHECK(matcher.next().problem == "rank 1 has ended");
}

inline void whatever_has_not_come_out_is_drained() {
  OperationMatcher matcher(0, 2);
  matcher.ready(operation_of(collective(0, 8)));
  matcher.ready(operation_of(message(OperationSignature::Kind::kReceive, -1, 0, 8)));
  matcher.ready(operation_of(message(OperationSignature::Kind::kSend, 1, 0, 8)));
  matcher.suppress(operation_of(collective(1, 8)));
  CHECK(matcher.drain().size() == 4 && matcher.drain().empty() && matcher.next().operation == nullptr);
}

inline void the_recorder_keeps_the_last() {
  distributed::FlightRecorder recorder(3);
  for (int i = 0; i < 5; ++i) {
    recorder.add(std::make_shared<distributed::FlightRecord>());
  }
  const auto records = recorder.records();
  CHECK(records.size() == 3 && records.front()->id == 2 && records.back()->id == 4);
}

inline void threads_are_joined_once_they_have_ended() {
  using std::chrono::milliseconds;
  distributed::Threads& threads = distributed::Threads::instance();
  std::promise<void> gate;
  const auto owned = std::make_shared<int>(0);
  threads.start([owned, opened = gate.get_future().share()] { opened.wait(); });
  CHECK(!threads.join(milliseconds(1)));
  gate.set_value();
  CHECK(threads.join(milliseconds(60'000)));
  CHECK(owned.use_count() == 1);  // what the thread owned went with it
}

inline void check_all() {
  control_messages_are_encoded_into_as_few_strings_as_they_fit();
  a_string_that_is_no_control_message_is_rejected();
  a_collective_begins_when_all_have_announced_it();
  who_gives_something_else_is_named();
  messages_are_received_in_the_order_of_their_tag();
  a_rank_that_is_lost_ends_what_needs_it();
  whatever_has_not_come_out_is_drained();
  the_recorder_keeps_the_last();
  threads_are_joined_once_they_have_ended();
}

}  // namespace progress_test
