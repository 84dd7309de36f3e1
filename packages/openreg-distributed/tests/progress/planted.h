// SPDX-License-Identifier: BSD-3-Clause
// Faults planted on purpose, for each kind of sanitizer: a report of each is expected before silence means anything.
#pragma once

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "checks.h"
#include "fake_rank.h"

namespace progress_test {

// The matcher has no lock of its own.
inline void plant_race_in_the_matcher() {
  OperationMatcher matcher(0, 2);
  const ControlMessage announced_message = announced(message(OperationSignature::Kind::kSend, 0, 0, 8), 0);
  std::atomic<bool> started{false};
  std::thread reader([&] {
    started.store(true, std::memory_order_relaxed);
    for (int i = 0; i < 1000; ++i) {
      matcher.on_message(1, announced_message);
    }
  });
  while (!started.load(std::memory_order_relaxed)) {
  }
  for (int i = 0; i < 1000; ++i) {
    matcher.ready(operation_of(message(OperationSignature::Kind::kReceive, 1, 0, 8)));
  }
  reader.join();
}

// A transport that reports the end of a collective before it has written the result, which the device reads meanwhile.
inline void plant_end_before_the_last_write() {
  Network network(2, 1, true);
  std::vector<std::thread> ranks;
  for (int self = 0; self < 2; ++self) {
    ranks.emplace_back([&network, self] {
      Rank rank(network, self, 2, std::chrono::milliseconds(10'000));
      for (int i = 0; i < 200; ++i) {
        rank.add(kNumbers);
      }
      rank.synchronize();
      rank.close();
      network.end(self);
    });
  }
  for (std::thread& rank : ranks) {
    rank.join();
  }
}

// A transport that ends before the group, which has something to say to the other rank.
inline void plant_transport_that_ends_before_the_group() {
  auto network = std::make_unique<Network>(2, 1);
  const auto progress = ProgressEngine::create(0, 2, std::make_shared<FakeControlChannel>(*network, 0), [] {});
  network.reset();
  progress->abort("aborted on purpose");
}

// An operation that is retained by what it retains.
inline void plant_leak_of_an_operation() {
  for (int i = 0; i < 10; ++i) {  // the address of the last may still lie somewhere
    auto operation = operation_of(collective(0, 8));
    operation->set_cancel([operation] {});
  }
}

// A message whose header names a greater length than it has.
inline void plant_message_that_is_cut() {
  std::vector<ControlMessage> decoded;
  const std::string whole =
      distributed::encode({{ControlMessage::Kind::kCollective, 1, 2, 3, 4, 5, std::string(200, 'x')}}).front();
  const std::unique_ptr<char[]> cut(new char[40]);
  std::memcpy(cut.get(), whole.data(), 40);
  distributed::decode(std::string_view(cut.get(), whole.size()), decoded);
}

// False when there is no such fault.
inline bool plant(const char* name) {
  struct Fault {
    const char* name;
    void (*run)();
  };
  constexpr Fault kFaults[] = {{"race_in_the_matcher", plant_race_in_the_matcher},
                               {"end_before_the_last_write", plant_end_before_the_last_write},
                               {"transport_that_ends_before_the_group", plant_transport_that_ends_before_the_group},
                               {"leak_of_an_operation", plant_leak_of_an_operation},
                               {"message_that_is_cut", plant_message_that_is_cut}};
  for (const Fault& fault : kFaults) {
    if (std::strcmp(name, fault.name) == 0) {
      fault.run();
      return true;
    }
  }
  return false;
}

}  // namespace progress_test
