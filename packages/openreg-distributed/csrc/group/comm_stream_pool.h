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

// What takes lanes in turn: operations of one route begin and end in order.
struct Route {
  static constexpr int kCollective = -1;
  static constexpr int kAnySource = -2;

  int peer = kCollective;
  bool receives = false;
  int tag = 0;

  // The channel (see Progress): one for all collectives, one for each peer.
  int channel() const noexcept { return peer; }
};

// A lane as PyTorch sees it. The mutex is held by who enqueues on it.
struct DeviceLane {
  explicit DeviceLane(c10::Stream stream);

  const c10::Stream stream;
  Lane lane;
  std::mutex mutex;
};

// The lanes of one group, made as they are needed. A route has a few on each device, taken in turn: so many of its
// operations overlap. Not thread-safe.
class Lanes {
 public:
  // The priority of their streams, as PyTorch counts them.
  explicit Lanes(int priority) : priority_(priority) {}

  DeviceLane& next(c10::DeviceIndex device, const Route& route);

 private:
  static constexpr size_t kLanesPerRoute = 8;
  // Messages of a peer with different tags may be received in any order, so a tag has lanes of its own. Programs that
  // count tags up share them after so many.
  static constexpr int kTags = 64;

  struct Ring {
    std::array<std::unique_ptr<DeviceLane>, kLanesPerRoute> lanes;
    size_t next = 0;
  };
  const int priority_;
  std::map<std::tuple<c10::DeviceIndex, int, bool, int>, Ring> rings_;
};

}  // namespace openreg::distributed
