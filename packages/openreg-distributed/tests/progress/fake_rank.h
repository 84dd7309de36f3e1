// SPDX-License-Identifier: BSD-3-Clause
// One rank of a fake group: operations on memory of a device, in the order of its streams, as the process group makes
// them.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fake_network.h"
#include "openreg.h"
#include "progress/comm_stream.h"
#include "progress/progress_engine.h"

namespace progress_test {

using distributed::Operation;
using distributed::Outcome;
using distributed::Progress;
using OperationPtr = std::shared_ptr<Operation>;

constexpr size_t kNumbers = 16;  // in the memory of an operation

inline void check(orError_t status) {
  if (status != orSuccess) {
    fail(orGetLastErrorMessage(), __FILE__, __LINE__);
  }
}

inline int64_t* kernel_view(void* address) {
  ptrdiff_t offset = 0;
  check(orGetKernelViewOffset(&offset));
  return reinterpret_cast<int64_t*>(static_cast<char*>(address) + offset);
}

// A kernel that fills numbers, and one that compares them.
struct Numbers {
  int64_t* data;
  size_t count;
  int64_t value;
};

inline orError_t fill(void* state, char*, size_t) {
  const auto* numbers = static_cast<const Numbers*>(state);
  std::fill_n(numbers->data, numbers->count, numbers->value);
  return orSuccess;
}

inline orError_t compare(void* state, char* message, size_t size) {
  const auto* numbers = static_cast<const Numbers*>(state);
  for (size_t i = 0; i < numbers->count; ++i) {
    if (numbers->data[i] != numbers->value) {
      std::snprintf(message, size, "number %zu is %lld, not %lld", i, static_cast<long long>(numbers->data[i]),
                    static_cast<long long>(numbers->value));
      return orErrorUnknown;
    }
  }
  return orSuccess;
}

// False where the device has failed.
inline bool launch(orStream_t stream, orKernelFunction_t function, const Numbers& numbers) {
  auto* state = new Numbers(numbers);
  const orKernel kernel{"numbers", function, state, [](void* gone) { delete static_cast<Numbers*>(gone); }};
  if (orLaunchKernel(stream, &kernel) == orSuccess) {
    return true;
  }
  delete state;
  return false;
}

// Memory of the device for one operation.
class Room {
 public:
  Room() { check(orMalloc(&address_, kNumbers * sizeof(int64_t))); }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  ~Room() { orFree(address_); }
  int64_t* data() const { return kernel_view(address_); }

 private:
  void* address_ = nullptr;
};

// Used by one thread.
class Rank {
 public:
  // Without `compares` nobody looks at the results.
  Rank(Network& network, int rank, int size, std::chrono::milliseconds timeout, bool compares = true)
      : network_(network), rank_(rank), size_(size), timeout_(timeout), compares_(compares) {
    check(orSetDevice(rank));
    check(orStreamCreate(&stream_));
    for (Route& route : routes_) {
      check(orStreamCreateWithPriority(&route.stream, 0, -1000));
      route.lane = std::make_unique<distributed::Lane>(route.stream);
    }
    progress = Progress::create(rank, size, std::make_shared<FakeLink>(network, rank), [this] { ++failures; });
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // The sum of the ranks' numbers; other ranks give the same count. Null where the group or the device refuses.
  OperationPtr add(size_t count, distributed::Injected injected = distributed::Injected::kNothing) {
    distributed::Terms terms;
    terms.number = collectives_;
    terms.contract = 7;
    terms.sent = terms.expected = {count};
    const int64_t mine = rank_ + static_cast<int64_t>(collectives_);
    int64_t sum = 0;
    for (int rank = 0; rank < size_; ++rank) {
      sum += rank + static_cast<int64_t>(collectives_);
    }
    const auto post = [this, count, number = collectives_](int64_t* data, const OperationPtr& operation) {
      network_.add(rank_, number, data, count, done(operation));
    };
    return enqueue("add", std::move(terms), routes_[next_++ % kLanes], -1, mine, sum, count, post, injected);
  }
  OperationPtr send(int to, int tag, int64_t value, size_t count) {
    distributed::Terms terms = message(distributed::Terms::Kind::kSend, to, tag, count);
    const auto post = [this, to, tag, count](int64_t* data, const OperationPtr& operation) {
      network_.message(rank_, to, tag, true, data, count, done(operation));
    };
    return enqueue("send", std::move(terms), routes_[kLanes], to, value, value, count, post);
  }
  // From any rank where `from` is -1.
  OperationPtr receive(int from, int tag, int64_t expected, size_t count) {
    distributed::Terms terms = message(distributed::Terms::Kind::kReceive, from, tag, count);
    const auto post = [this, tag, count](int64_t* data, const OperationPtr& operation) {
      network_.message(operation->source(), rank_, tag, false, data, count, done(operation));
    };
    return enqueue("receive", std::move(terms), routes_[kLanes + 1], from, -1, expected, count, post);
  }

  // Waits for the device; whether nothing has failed.
  bool synchronize() { return orStreamSynchronize(stream_) == orSuccess; }

  // Ends the group's part here. Afterwards nothing of it uses the network.
  void close() {
    progress->close();
    progress->wait_closed();
    progress->drop_returned();
    check(orDeviceReset());
    rooms_.clear();
    for (Route& route : routes_) {
      route.lane.reset();
      check(orStreamDestroy(route.stream));
    }
    check(orStreamDestroy(stream_));
  }

  std::shared_ptr<Progress> progress;
  std::atomic<int> failures{0};

 private:
  static constexpr size_t kLanes = 3;

  struct Route {
    orStream_t stream = nullptr;
    std::unique_ptr<distributed::Lane> lane;
  };

  Network::Done done(const OperationPtr& operation) {
    return [progress = progress, operation](const std::string& error) { progress->transport_done(operation, error); };
  }

  static distributed::Terms message(distributed::Terms::Kind kind, int peer, int tag, size_t count) {
    distributed::Terms terms;
    terms.kind = kind;
    terms.sent = terms.expected = {count};
    terms.peer = peer;
    terms.tag = tag;
    return terms;
  }

  template <class Post>
  OperationPtr enqueue(const char* name, distributed::Terms terms, Route& route, int channel, int64_t before,
                       int64_t after, size_t count, Post post,
                       distributed::Injected injected = distributed::Injected::kNothing) {
    if (!progress->failure().empty()) {
      return nullptr;
    }
    progress->drop_returned();
    check(orSetDevice(rank_));
    auto room = std::make_shared<Room>();
    int64_t* const data = room->data();
    std::unique_ptr<distributed::Ticket> ticket;
    if (!launch(stream_, fill, {data, count, before}) || !follow(route.stream, stream_)) {
      return nullptr;
    }
    if (route.lane->hold(ticket) != orSuccess) {
      return nullptr;
    }
    distributed::Description description;
    description.name = name;
    description.sequence = ++sequence_;
    description.group = place_;
    auto flight = std::make_shared<distributed::Flight>();
    flight->timeout = timeout_;
    const bool collective = terms.kind == distributed::Terms::Kind::kCollective;
    auto operation = std::make_shared<Operation>(
        std::move(description), std::move(terms), std::move(flight), std::move(ticket),
        [post = std::move(post), data](const OperationPtr& self) { post(data, self); }, room);
    operation->set_injected(injected);
    collectives_ += collective ? 1 : 0;
    progress->submit(operation, channel);
    if (follow(stream_, route.stream) && compares_) {
      launch(stream_, compare, {data, count, after});
    }
    rooms_.push_back(std::move(room));  // until the device has compared
    return operation;
  }

  // Later work of one stream comes after what another one holds now.
  static bool follow(orStream_t later, orStream_t earlier) {
    orEvent_t event = nullptr;
    check(orEventCreate(&event));
    const bool good = orEventRecord(event, earlier) == orSuccess && orStreamWaitEvent(later, event, 0) == orSuccess;
    check(orEventDestroy(event));
    return good;
  }

  Network& network_;
  const int rank_;
  const int size_;
  const std::chrono::milliseconds timeout_;
  const bool compares_;
  const std::shared_ptr<const std::string> place_ = std::make_shared<const std::string>("a rank");
  orStream_t stream_ = nullptr;
  std::array<Route, kLanes + 2> routes_;  // of collectives, and of messages that are sent or received
  std::vector<std::shared_ptr<Room>> rooms_;
  size_t next_ = 0;
  uint64_t sequence_ = 0;
  uint64_t collectives_ = 0;
};

}  // namespace progress_test
