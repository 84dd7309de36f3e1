// SPDX-License-Identifier: BSD-3-Clause
// Process groups without torch and on a fake transport: checks of each part, then groups of three ranks that work, and
// fail in every way, with every number checked; meant to run under a sanitizer.
//
//   progress_stress SECONDS [SEED]     exit status 0: all checks retained, and all was right
//   progress_stress plant FAULT        does one thing wrong (planted.h); under a sanitizer it must not end well
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "checks.h"
#include "fake_rank.h"
#include "planted.h"
#include "progress/threads.h"

namespace progress_test {
namespace {

constexpr int kRanks = 3;
constexpr size_t kCalls = 40;
constexpr std::chrono::milliseconds kLong{60'000};
constexpr std::chrono::milliseconds kShort{60};

enum class Ending { kWell, kAbort, kHang, kDisagree, kGone, kDrop, kLeft, kExit, kEndings };

struct Round {
  Ending ending;
  int culprit;    // the rank
  size_t moment;  // the call at which it does so
  uint64_t seed;  // of what all ranks call
};

// What one rank does, in the same order as all others; false where it ends its part before the end.
bool call(Rank& rank, int self, const Round& round, size_t i, Random& random, std::vector<OperationPtr>& made) {
  const bool culprit = self == round.culprit && i == round.moment;
  const size_t kind = pick(random, 6);
  const size_t count = 1 + pick(random, kNumbers);
  const int from = static_cast<int>(pick(random, kRanks));
  const int to = (from + 1 + static_cast<int>(pick(random, kRanks - 1))) % kRanks;
  const bool from_any = pick(random, 4) == 0;
  // Where any rank may be meant, no other message has the tag.
  const int tag = from_any ? 100 + static_cast<int>(i) : static_cast<int>(pick(random, 2));
  if (culprit && round.ending == Ending::kAbort) {
    rank.progress->abort("aborted on purpose");
  } else if (culprit && round.ending == Ending::kExit) {
    CHECK(ProgressEngine::end_all(kLong));  // of all ranks, which are of one process here
  } else if (culprit && (round.ending == Ending::kHang || round.ending == Ending::kLeft)) {
    return false;
  } else if (culprit && round.ending == Ending::kDisagree) {
    made.push_back(rank.add(count % kNumbers + 1));
    return false;
  } else if (culprit && round.ending == Ending::kDrop) {
    made.push_back(rank.add(count, distributed::CollectiveFault::kDropped));
    return false;
  }
  const bool decides = i == round.moment && (round.ending == Ending::kHang || round.ending == Ending::kDisagree ||
                                             round.ending == Ending::kDrop);
  if (kind > 1 || decides) {
    made.push_back(rank.add(count));
  } else if (self == from) {
    made.push_back(rank.send(to, tag, static_cast<int64_t>(100 * i), count));
  } else if (self == to) {
    made.push_back(rank.receive(from_any ? -1 : from, tag, static_cast<int64_t>(100 * i), count));
  }
  return true;
}

void work(Network& network, int self, const Round& round, std::latch& made, std::atomic<int>& timed_out) {
  // Who receives from any rank waits on when one of them is gone: another one may send.
  const bool is_short = round.ending == Ending::kHang || round.ending == Ending::kDrop ||
                        round.ending == Ending::kGone || round.ending == Ending::kLeft;
  // After an abort the device goes on while the transport may still write.
  const bool compares = round.ending != Ending::kAbort && round.ending != Ending::kExit;
  Rank rank(network, self, kRanks, is_short ? kShort : kLong, compares);
  made.arrive_and_wait();  // a group that is made later is not ended with the others
  Random random(round.seed);
  std::vector<OperationPtr> operations;
  for (size_t i = 0; i < kCalls; ++i) {
    if (self == round.culprit && i == round.moment && round.ending == Ending::kGone) {
      network.end(self);
      break;
    }
    if (!call(rank, self, round, i, random, operations)) {
      break;
    }
  }
  const bool well = rank.synchronize();
  std::erase(operations, nullptr);
  if (round.ending == Ending::kWell) {
    CHECK(well && rank.progress->failure().empty() && rank.failures == 0);
  }
  for (const OperationPtr& operation : operations) {
    CHECK(operation->wait(kLong));  // whatever has happened, each comes to an end
    const bool good = operation->status() == OperationStatus::kSuccess;
    CHECK(good == operation->reason().empty());
    CHECK(good || round.ending != Ending::kWell);
  }
  if (self == round.culprit && round.ending == Ending::kDisagree) {
    CHECK(operations.back()->status() == OperationStatus::kFailed);
    CHECK(operations.back()->reason().find("rank ") != std::string::npos);
  }
  if (round.ending == Ending::kHang) {  // a rank that hangs does not close its connections
    // A rank that has called nothing gets no error. It ends when another rank has timed out.
    while (rank.progress->failure().empty() && (!operations.empty() || timed_out == 0)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  if (rank.progress->failure().find("within its timeout of 60 ms") != std::string::npos) {
    ++timed_out;
  }
  rank.close();
  CHECK(rank.progress->outstanding() == 0);
  network.end(self);  // as a transport does that is destroyed
}

void run(double seconds, uint64_t seed) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  Random random(seed);
  uint64_t rounds = 0;
  for (; std::chrono::steady_clock::now() < end || rounds < static_cast<uint64_t>(Ending::kEndings); ++rounds) {
    const auto ending = static_cast<Ending>(rounds % static_cast<uint64_t>(Ending::kEndings));
    const Round round{ending, static_cast<int>(pick(random, kRanks)), 1 + pick(random, kCalls - 1), random()};
    Network network(kRanks, random());
    std::latch made(kRanks);
    std::atomic<int> timed_out{0};
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks.emplace_back([&, rank] { work(network, rank, round, made, timed_out); });
    }
    for (std::thread& rank : ranks) {
      rank.join();
    }
    CHECK(distributed::Threads::instance().join(kLong));
    const bool waits = ending == Ending::kHang || ending == Ending::kDrop;
    CHECK((timed_out > 0) == waits || ending == Ending::kGone || ending == Ending::kLeft);
  }
  std::printf("%llu groups, seed %llu\n", static_cast<unsigned long long>(rounds),
              static_cast<unsigned long long>(seed));
}

}  // namespace
}  // namespace progress_test

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "plant") == 0) {
    return progress_test::plant(argv[2]) ? 0 : 2;
  }
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  if (seconds <= 0) {
    std::fprintf(stderr, "usage: progress_stress SECONDS [SEED]\n");
    return 2;
  }
  progress_test::check_all();
  progress_test::run(seconds, seed);
  return 0;
}
