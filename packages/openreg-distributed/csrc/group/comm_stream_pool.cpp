// SPDX-License-Identifier: BSD-3-Clause
#include "comm_stream_pool.h"

#include "openreg/runtime/stream.h"

namespace openreg::distributed {

DeviceLane::DeviceLane(c10::Stream stream) : stream(stream), lane(runtime::native_handle(stream)) {}

DeviceLane& Lanes::next(c10::DeviceIndex device, const Route& route) {
  Ring& ring = rings_[{device, route.peer, route.receives, route.tag % kTags}];
  std::unique_ptr<DeviceLane>& lane = ring.lanes[ring.next++ % kLanesPerRoute];
  if (lane == nullptr) {
    lane = std::make_unique<DeviceLane>(runtime::new_stream(device, priority_));
  }
  return *lane;
}

}  // namespace openreg::distributed
