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
using distributed::OperationStatus;
using distributed::ProgressEngine;
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
  // Without `compares` the results are not checked.
  Rank(Network& network, int rank, int size, std::chrono::milliseconds timeout, bool compares = true)
      : network_(network), rank_(rank), size_(size), timeout_(timeout), compares_(compares) {
    check(orSetDevice(rank));
    check(orStreamCreate(&stream_));
    for (Route& route : routes_) {
      check(orStreamCreateWithPriority(&route.stream, 0, -1000));
      route.comm_stream = std::make_unique<distributed::CommStream>(route.stream);
    }
    progress =
        ProgressEngine::create(rank, size, std::make_shared<FakeControlChannel>(network, rank), [this] { ++failures; });
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // The sum of the ranks' numbers; other ranks give the same count. Null where the group or the device refuses.
  OperationPtr add(size_t count, distributed::CollectiveFault fault = distributed::CollectiveFault::kNothing) {
    distributed::OperationSignature signature;
    signature.number = collectives_;
    signature.fingerprint = 7;
    signature.sent = signature.expected = {count};
    const int64_t mine = rank_ + static_cast<int64_t>(collectives_);
    int64_t sum = 0;
    for (int rank = 0; rank < size_; ++rank) {
      sum += rank + static_cast<int64_t>(collectives_);
    }
    const auto post = [this, count, number = collectives_](int64_t* data, const OperationPtr& operation) {
      network_.add(rank_, number, data, count, done(operation));
    };
    return enqueue("add", std::move(signature), routes_[next_++ % kStreams], -1, mine, sum, count, post, fault);
  }
  OperationPtr send(int to, int tag, int64_t value, size_t count) {
    distributed::OperationSignature signature = message(distributed::OperationSignature::Kind::kSend, to, tag, count);
    const auto post = [this, to, tag, count](int64_t* data, const OperationPtr& operation) {
      network_.message(rank_, to, tag, true, data, count, done(operation));
    };
    return enqueue("send", std::move(signature), routes_[kStreams], to, value, value, count, post);
  }
  // From any rank where `from` is -1.
  OperationPtr receive(int from, int tag, int64_t expected, size_t count) {
    distributed::OperationSignature signature =
        message(distributed::OperationSignature::Kind::kReceive, from, tag, count);
    const auto post = [this, tag, count](int64_t* data, const OperationPtr& operation) {
      network_.message(operation->source(), rank_, tag, false, data, count, done(operation));
    };
    return enqueue("receive", std::move(signature), routes_[kStreams + 1], from, -1, expected, count, post);
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
      route.comm_stream.reset();
      check(orStreamDestroy(route.stream));
    }
    check(orStreamDestroy(stream_));
  }

  std::shared_ptr<ProgressEngine> progress;
  std::atomic<int> failures{0};

 private:
  static constexpr size_t kStreams = 3;

  struct Route {
    orStream_t stream = nullptr;
    std::unique_ptr<distributed::CommStream> comm_stream;
  };

  Network::Done done(const OperationPtr& operation) {
    return [progress = progress, operation](const std::string& error) { progress->transport_done(operation, error); };
  }

  static distributed::OperationSignature message(distributed::OperationSignature::Kind kind, int peer, int tag,
                                                 size_t count) {
    distributed::OperationSignature signature;
    signature.kind = kind;
    signature.sent = signature.expected = {count};
    signature.peer = peer;
    signature.tag = tag;
    return signature;
  }

  template <class Post>
  OperationPtr enqueue(const char* name, distributed::OperationSignature signature, Route& route, int queue,
                       int64_t before, int64_t after, size_t count, Post post,
                       distributed::CollectiveFault fault = distributed::CollectiveFault::kNothing) {
    if (!progress->failure().empty()) {
      return nullptr;
    }
    progress->drop_returned();
    check(orSetDevice(rank_));
    auto room = std::make_shared<Room>();
    int64_t* const data = room->data();
    std::unique_ptr<distributed::StreamWait> stream_wait;
    if (!launch(stream_, fill, {data, count, before}) || !follow(route.stream, stream_)) {
      return nullptr;
    }
    if (route.comm_stream->enqueue_semaphore_wait(stream_wait) != orSuccess) {
      return nullptr;
    }
    distributed::OperationDescription description;
    description.name = name;
    description.sequence = ++sequence_;
    description.group = rank_description_;
    auto flight = std::make_shared<distributed::FlightRecord>();
    flight->timeout = timeout_;
    const bool collective = signature.kind == distributed::OperationSignature::Kind::kCollective;
    auto operation = std::make_shared<Operation>(
        std::move(description), std::move(signature), std::move(flight),
        [post = std::move(post), data](const OperationPtr& self) { post(data, self); }, room);
    operation->set_stream_wait(std::move(stream_wait));
    operation->set_fault(fault);
    collectives_ += collective ? 1 : 0;
    progress->submit(operation, queue);
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
  const std::shared_ptr<const std::string> rank_description_ = std::make_shared<const std::string>("a rank");
  orStream_t stream_ = nullptr;
  std::array<Route, kStreams + 2> routes_;  // of collectives, and of messages that are sent or received
  std::vector<std::shared_ptr<Room>> rooms_;
  size_t next_ = 0;
  uint64_t sequence_ = 0;
  uint64_t collectives_ = 0;
};

}  // namespace progress_test
