// SPDX-License-Identifier: BSD-3-Clause
// The communication streams of a process group: streams of the device on which the tasks of its collectives and
// messages (sends and receives) are enqueued.
#pragma once

#include <c10/core/Stream.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "progress/comm_stream.h"

namespace openreg::distributed {

// A key that selects the communication streams of an operation (a call of the group). Operations of one key start in
// the order of their calls.
struct CommStreamKey {
  static constexpr int kCollective = -1;
  static constexpr int kAnySource = -2;

  int peer = kCollective;  // The other rank of a message, or one of the two values above.
  bool receives = false;   // True for a receive.
  int tag = 0;             // The tag of a message.

  // Returns true for a send or a receive.
  bool is_message() const noexcept { return peer != kCollective; }
  // Returns the number of the queue of the progress engine to which the operation is submitted. The queue's thread
  // announces operations to the other ranks and makes them ready in the order of their calls
  // (ProgressEngine::submit()). All collectives have one queue, and the messages of each peer have one.
  int queue() const noexcept { return peer; }
};

// A communication stream with its PyTorch handle. A thread locks `mutex` while it enqueues the tasks of one operation.
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
  // `priority` is that of c10 streams, where a lower number precedes.
  explicit CommStreamPool(int priority) : priority_(priority) {}

  // Returns the stream for the next operation of `key` on `device`. Valid as long as the pool.
  PooledCommStream& next(c10::DeviceIndex device, const CommStreamKey& key);

 private:
  static constexpr size_t kStreamsPerKey = 8;
  // Messages of a peer with different tags may be received in any order, so each tag has its own streams. Tags that are
  // equal modulo this number share them, because a program may use a new tag for each message.
  static constexpr int kTags = 64;

  // The streams of one key on one device, and the index of the next one.
  struct RoundRobin {
    std::array<std::unique_ptr<PooledCommStream>, kStreamsPerKey> streams;
    size_t next = 0;
  };
  const int priority_;
  std::map<std::tuple<c10::DeviceIndex, int, bool, int>, RoundRobin> streams_;
};

}  // namespace openreg::distributed
