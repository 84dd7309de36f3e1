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

using distributed::Agreement;
using distributed::Announcement;
using distributed::Terms;

// An operation that no device knows of.
inline std::shared_ptr<distributed::Operation> operation_of(Terms terms, const char* name = "add") {
  distributed::Description description;
  description.name = name;
  description.sequence = 1;
  description.group = std::make_shared<const std::string>("a rank");
  return std::make_shared<distributed::Operation>(std::move(description), std::move(terms),
                                                  std::make_shared<distributed::Flight>(), nullptr, nullptr, nullptr);
}

inline Terms collective(uint64_t number, uint64_t bytes, uint64_t contract = 1) {
  Terms terms;
  terms.number = number;
  terms.contract = contract;
  terms.sent = terms.expected = {bytes};
  return terms;
}

inline Terms message(Terms::Kind kind, int peer, int tag, uint64_t bytes) {
  Terms terms = collective(0, bytes);
  terms.kind = kind;
  terms.peer = peer;
  terms.tag = tag;
  return terms;
}

inline Announcement announced(const Agreement& of, const Terms& terms, int to) {
  Announcement announcement;
  CHECK(of.announce(*operation_of(terms), to, announcement));
  return announcement;
}

inline void announcements_travel_in_as_few_messages_as_they_fit() {
  std::vector<Announcement> sent;
  for (uint64_t i = 0; i < 200; ++i) {
    sent.push_back({i % 2 == 0 ? Announcement::Kind::kCollective : Announcement::Kind::kMessage, i, ~i, i << 40, i * 3,
                    static_cast<int32_t>(i), std::string(i, 'x')});
  }
  sent.push_back({Announcement::Kind::kFailure, 0, 0, 0, 0, 0, std::string(10'000, 'y')});
  std::vector<Announcement> heard;
  const std::vector<std::string> messages = distributed::encode(sent);
  for (const std::string& message : messages) {
    CHECK(message.size() <= distributed::kLongestMessage);
    CHECK(distributed::decode(message + "whatever stands behind it", heard));
  }
  CHECK(messages.size() > 1 && messages.size() < 20 && heard.size() == sent.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    CHECK(heard[i].kind == sent[i].kind && heard[i].number == sent[i].number && heard[i].tag == sent[i].tag);
    CHECK(heard[i].contract == sent[i].contract && heard[i].sent == sent[i].sent);
    CHECK(heard[i].expected == sent[i].expected && sent[i].text.starts_with(heard[i].text));
    CHECK(heard[i].text == sent[i].text || sent[i].text.size() == 10'000);
  }
}

inline void a_message_that_is_none_is_refused() {
  const std::string good = distributed::encode({{Announcement::Kind::kCollective, 1, 2, 3, 4, 5, "text"}}).front();
  std::vector<Announcement> heard;
  for (size_t size = 0; size < good.size(); ++size) {
    CHECK(!distributed::decode(good.substr(0, size), heard));
  }
  for (size_t i = 0; i < good.size(); ++i) {
    std::string other = good;
    other[i] = static_cast<char>(other[i] ^ 0x7F);
    heard.clear();
    distributed::decode(other, heard);  // another announcement, or none; and no byte outside of it is read
  }
}

inline void a_collective_begins_when_all_have_announced_it() {
  Agreement agreement(0, 3);
  const auto first = operation_of(collective(0, 8));
  const auto second = operation_of(collective(1, 8));
  agreement.ready(first);
  agreement.ready(second);
  CHECK(agreement.next().operation == nullptr);
  for (const int peer : {2, 1}) {
    CHECK(agreement.next().operation == nullptr);
    CHECK(agreement.missing(*first).find("rank 1 has made 0") != std::string::npos);
    CHECK(agreement.hear(peer, announced(agreement, collective(0, 8), 0)).empty());
  }
  const Agreement::Next next = agreement.next();
  CHECK(next.operation == first && next.problem.empty());
  CHECK(agreement.next().operation == nullptr);
  CHECK(agreement.missing(*second).find("rank 2 has made 1") != std::string::npos);
  CHECK(!agreement.hear(1, announced(agreement, collective(2, 8), 0)).empty());  // it has left one out
}

inline void who_gives_something_else_is_named() {
  const std::pair<Terms, const char*> others[] = {{collective(0, 16), "sends 16 bytes"},
                                                  {collective(0, 8, 2), "called add number 1 instead"}};
  for (const auto& [terms, said] : others) {
    Agreement agreement(1, 2);
    agreement.ready(operation_of(collective(0, 8)));
    CHECK(agreement.hear(0, announced(agreement, terms, 1)).empty());
    CHECK(agreement.next().problem.find(said) != std::string::npos);
  }
  Agreement agreement(1, 2);
  Terms mine = collective(0, 0);
  mine.sent = {4, 0};  // 4 bytes for rank 0, which expects 12
  Terms theirs = collective(0, 0);
  theirs.expected = {0, 12};
  agreement.ready(operation_of(mine));
  CHECK(agreement.hear(0, announced(agreement, theirs, 1)).empty());
  CHECK(agreement.next().problem.find("expects 12 bytes of this rank") != std::string::npos);
}

inline void messages_are_received_in_the_order_of_their_tag() {
  Agreement agreement(0, 3);
  const auto hear = [&](int from, int tag, uint64_t bytes) {
    CHECK(agreement.hear(from, announced(agreement, message(Terms::Kind::kSend, 0, tag, bytes), 0)).empty());
  };
  const auto receive = [&](int from, int tag, uint64_t bytes) {
    auto operation = operation_of(message(Terms::Kind::kReceive, from, tag, bytes), "receive");
    agreement.ready(operation);
    return operation;
  };
  hear(2, 5, 10);
  hear(1, 5, 20);
  hear(2, 5, 30);
  hear(2, 6, 40);
  const auto of_tag_6 = receive(2, 6, 40);
  const auto of_any = receive(-1, 5, 10);  // what was announced first
  const auto of_rank_2 = receive(2, 5, 30);
  const auto too_small = receive(1, 5, 19);
  const auto not_there = receive(1, 5, 50);
  for (const auto& [operation, source] : {std::pair(of_tag_6, 2), {of_any, 2}, {of_rank_2, 2}}) {
    const Agreement::Next next = agreement.next();
    CHECK(next.operation == operation && next.problem.empty() && operation->source() == source);
  }
  CHECK(agreement.next().problem.find("rank 1 sends 20 bytes") != std::string::npos);
  CHECK(agreement.next().operation == nullptr && too_small->source() == 1);
  CHECK(agreement.missing(*not_there).find("rank 1 sends no message with tag 5") != std::string::npos);
  agreement.lose(1, "rank 1 has ended");
  const Agreement::Next lost = agreement.next();
  CHECK(lost.operation == not_there && lost.problem == "rank 1 has ended");
}

inline void a_rank_that_is_lost_ends_what_needs_it() {
  Agreement agreement(0, 2);
  CHECK(agreement.hear(1, announced(agreement, collective(0, 8), 0)).empty());
  agreement.lose(1, "rank 1 has ended");
  agreement.ready(operation_of(collective(0, 8)));
  CHECK(agreement.next().problem.empty());  // it was announced before
  agreement.ready(operation_of(collective(1, 8)));
  CHECK(agreement.next().problem == "rank 1 has ended");
  agreement.ready(operation_of(message(Terms::Kind::kReceive, 1, 0, 8)));
  CHECK(agreement.next().problem == "rank 1 has ended");
}

inline void whatever_has_not_come_out_is_drained() {
  Agreement agreement(0, 2);
  agreement.ready(operation_of(collective(0, 8)));
  agreement.ready(operation_of(message(Terms::Kind::kReceive, -1, 0, 8)));
  agreement.ready(operation_of(message(Terms::Kind::kSend, 1, 0, 8)));
  agreement.hold_back(operation_of(collective(1, 8)));
  CHECK(agreement.drain().size() == 4 && agreement.drain().empty() && agreement.next().operation == nullptr);
}

inline void the_recorder_keeps_the_last() {
  distributed::FlightRecorder recorder(3);
  for (int i = 0; i < 5; ++i) {
    recorder.add(std::make_shared<distributed::Flight>());
  }
  const auto flights = recorder.flights();
  CHECK(flights.size() == 3 && flights.front()->id == 2 && flights.back()->id == 4);
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
  announcements_travel_in_as_few_messages_as_they_fit();
  a_message_that_is_none_is_refused();
  a_collective_begins_when_all_have_announced_it();
  who_gives_something_else_is_named();
  messages_are_received_in_the_order_of_their_tag();
  a_rank_that_is_lost_ends_what_needs_it();
  whatever_has_not_come_out_is_drained();
  the_recorder_keeps_the_last();
  threads_are_joined_once_they_have_ended();
}

}  // namespace progress_test
