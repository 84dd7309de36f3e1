// SPDX-License-Identifier: BSD-3-Clause
// A transport between ranks that are threads of one process. It carries control messages, collectives that add numbers,
// and messages. It completes them at any time and in any order, reports calls that a transport must not get, and fails
// the operations with a rank that has gone.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "progress/control_channel.h"

namespace progress_test {

namespace distributed = openreg::distributed;

[[noreturn]] inline void fail(const char* what, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what);
  std::_Exit(1);
}

#define CHECK(condition)                                     \
  do {                                                       \
    if (!(condition)) {                                      \
      ::progress_test::fail(#condition, __FILE__, __LINE__); \
    }                                                        \
  } while (false)

using Random = std::mt19937_64;

inline size_t pick(Random& random, size_t count) {
  return static_cast<size_t>(random() % count);
}

// One group. Lives until all its ranks have closed theirs.
class Network {
 public:
  using Done = std::function<void(const std::string& error)>;

  // With `ends_early`, a collective is over before its result is written: a mistake that a sanitizer has to find.
  Network(int ranks, uint64_t seed, bool ends_early = false)
      : ranks_(ranks),
        ends_early_(ends_early),
        random_(seed),
        mail_(static_cast<size_t>(ranks * ranks)),
        gone_(static_cast<size_t>(ranks)),
        joined_(static_cast<size_t>(ranks)) {
    for (int i = 0; i < 2; ++i) {
      workers_.emplace_back([this] { work(); });
    }
  }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  ~Network() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    for (std::thread& worker : workers_) {
      worker.join();
    }
    CHECK(collectives_.empty() && sends_.empty() && receives_.empty() && jobs_.empty());
  }

  // What the links do.
  void send(int from, int to, const std::string& message) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (gone_[from] || gone_[to]) {
      throw std::runtime_error("connection closed");
    }
    mail(from, to).push_back(message);
    changed_.notify_all();
  }
  std::optional<std::string> receive(int to, int from, const std::atomic<bool>& closed) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return !mail(from, to).empty() || gone_[from] || gone_[to] || closed; });
    if (closed) {
      return std::nullopt;
    }
    if (mail(from, to).empty()) {
      throw std::runtime_error("connection closed");
    }
    std::string message = std::move(mail(from, to).front());
    mail(from, to).pop_front();
    return message;
  }
  void wake() {
    const std::lock_guard<std::mutex> lock(mutex_);
    changed_.notify_all();
  }

  // The connections of a rank close: whatever it takes part in fails, on all ranks.
  void end(int rank) {
    std::vector<Done> failed;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      gone_[rank] = true;
      for (auto& [number, parts] : collectives_) {
        for (Part& part : parts) {
          failed.push_back(std::move(part.done));
        }
      }
      collectives_.clear();
      const auto take = [&](auto& table) {
        for (auto entry = table.begin(); entry != table.end();) {
          if (std::get<0>(entry->first) == rank || std::get<1>(entry->first) == rank) {
            for (Part& part : entry->second) {
              failed.push_back(std::move(part.done));
            }
            entry = table.erase(entry);
          } else {
            ++entry;
          }
        }
      };
      take(sends_);
      take(receives_);
      changed_.notify_all();
    }
    for (const Done& done : failed) {
      done("connection closed");
    }
  }

  // The next collective of the rank: every rank's numbers become the sum of all. `done` is called on any thread.
  void add(int rank, uint64_t number, int64_t* data, size_t count, Done done) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      CHECK(joined_[rank]++ == number);  // a transport matches by order
      if (!anybody_gone()) {
        std::vector<Part>& parts = collectives_[number];
        CHECK(parts.empty() || parts.front().count == count);
        parts.push_back({data, count, std::move(done)});
        if (parts.size() == static_cast<size_t>(ranks_)) {
          schedule([this, parts = std::move(parts)] { add_up(parts); });
          collectives_.erase(number);
        }
        return;
      }
    }
    done("connection closed");
  }

  void message(int from, int to, int tag, bool sends, int64_t* data, size_t count, Done done) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!gone_[from] && !gone_[to]) {
        const Route route{from, to, tag};
        auto& own = (sends ? sends_ : receives_)[route];
        own.push_back({data, count, std::move(done)});
        pass(route);
        return;
      }
    }
    done("connection closed");
  }

 private:
  using Route = std::tuple<int, int, int>;  // from, to, tag
  struct Part {
    int64_t* data;
    size_t count;
    Done done;
  };

  std::deque<std::string>& mail(int from, int to) { return mail_[static_cast<size_t>(from * ranks_ + to)]; }
  bool anybody_gone() const {
    for (const bool gone : gone_) {
      if (gone) {
        return true;
      }
    }
    return false;
  }

  void pass(const Route& route) {
    const auto sent = sends_.find(route);
    const auto received = receives_.find(route);
    while (sent != sends_.end() && received != receives_.end() && !sent->second.empty() && !received->second.empty()) {
      Part from = std::move(sent->second.front());
      Part to = std::move(received->second.front());
      sent->second.pop_front();
      received->second.pop_front();
      CHECK(from.count == to.count);  // else a real one would end the process
      schedule([from = std::move(from), to = std::move(to)] {
        for (size_t i = 0; i < to.count; ++i) {
          to.data[i] = from.data[i];
        }
        from.done({});
        to.done({});
      });
    }
    for (auto* table : {&sends_, &receives_}) {
      const auto entry = table->find(route);
      if (entry != table->end() && entry->second.empty()) {
        table->erase(entry);
      }
    }
  }

  void add_up(const std::vector<Part>& parts) const {
    if (ends_early_) {
      for (const Part& part : parts) {
        part.done({});
      }
    }
    for (size_t i = 0; i < parts.front().count; ++i) {
      int64_t sum = 0;
      for (const Part& part : parts) {
        sum += part.data[i];
      }
      for (const Part& part : parts) {
        part.data[i] = sum;
      }
    }
    if (!ends_early_) {
      for (const Part& part : parts) {
        part.done({});
      }
    }
  }

  void schedule(std::function<void()> job) {
    jobs_.insert(jobs_.begin() + static_cast<std::ptrdiff_t>(pick(random_, jobs_.size() + 1)), std::move(job));
    changed_.notify_all();
  }

  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !jobs_.empty() || closed_; });
      if (jobs_.empty()) {
        return;
      }
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      const bool lingers = pick(random_, 8) == 0;
      lock.unlock();
      if (lingers) {
        std::this_thread::sleep_for(std::chrono::microseconds(300));
      }
      job();
      lock.lock();
    }
  }

  const int ranks_;
  const bool ends_early_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Random random_;
  std::vector<std::deque<std::string>> mail_;
  std::vector<bool> gone_;
  std::vector<uint64_t> joined_;
  std::map<uint64_t, std::vector<Part>> collectives_;
  std::map<Route, std::deque<Part>> sends_;
  std::map<Route, std::deque<Part>> receives_;
  std::deque<std::function<void()>> jobs_;
  bool closed_ = false;
  std::vector<std::thread> workers_;
};

// The control_channel of one rank.
class FakeControlChannel final : public distributed::ControlChannel {
 public:
  FakeControlChannel(Network& network, int rank) : network_(network), rank_(rank) {}

  void send(int peer, const std::string& message) override { network_.send(rank_, peer, message); }
  void try_send(int peer, const std::string& message) noexcept override {
    try {
      network_.send(rank_, peer, message);
    } catch (const std::exception&) {
      // as the interface says
    }
  }
  std::optional<std::string> receive(int peer) override {
    std::optional<std::string> message = network_.receive(rank_, peer, closed_);
    if (!message && ends_transport_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      network_.end(rank_);
    }
    return message;
  }
  void close(distributed::TransportEnd end) noexcept override {
    ends_transport_ = ends_transport_ || end != distributed::TransportEnd::kNone;
    closed_ = true;
    network_.wake();
  }

 private:
  Network& network_;
  const int rank_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> ends_transport_{false};
};

}  // namespace progress_test
