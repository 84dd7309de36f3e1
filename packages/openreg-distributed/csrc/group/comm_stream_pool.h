// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/Stream.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "progress/comm_stream.h"

namespace openreg::distributed {

// Selects the communication streams of an operation. Operations of one key start and complete in order.
struct CommStreamKey {
  static constexpr int kCollective = -1;
  static constexpr int kAnySource = -2;

  int peer = kCollective;
  bool receives = false;
  int tag = 0;

  // Returns the submission queue (see ProgressEngine): one for all collectives, one for each peer.
  int queue() const noexcept { return peer; }
};

// A communication stream with its PyTorch handle. A thread that enqueues on it holds `mutex`.
struct PooledCommStream {
  explicit PooledCommStream(c10::Stream stream);

  const c10::Stream stream;
  CommStream comm_stream;
  std::mutex mutex;
};

// The communication streams of one group, created on demand. A key has several on each device, used round robin, so
// that several of its operations overlap. Not thread-safe.
class CommStreamPool {
 public:
  // `priority` is that of c10 streams: a lower number runs first.
  explicit CommStreamPool(int priority) : priority_(priority) {}

  PooledCommStream& next(c10::DeviceIndex device, const CommStreamKey& key);

 private:
  static constexpr size_t kStreamsPerKey = 8;
  // Messages of a peer with different tags may be received in any order, so each tag has its own streams. Programs
  // that count tags up share them after this number.
  static constexpr int kTags = 64;

  struct RoundRobin {
    std::array<std::unique_ptr<PooledCommStream>, kStreamsPerKey> streams;
    size_t next = 0;
  };
  const int priority_;
  std::map<std::tuple<c10::DeviceIndex, int, bool, int>, RoundRobin> streams_;
};

}  // namespace openreg::distributed
