// SPDX-License-Identifier: BSD-3-Clause
#include "group/comm_stream_pool.h"

#include "openreg/runtime/stream.h"

namespace openreg::distributed {

PooledCommStream::PooledCommStream(c10::Stream stream) : stream(stream), comm_stream(runtime::native_handle(stream)) {}

PooledCommStream& CommStreamPool::next(c10::DeviceIndex device, const CommStreamKey& key) {
  RoundRobin& of_key = streams_[{device, key.peer, key.receives, key.tag % kTags}];
  std::unique_ptr<PooledCommStream>& stream = of_key.streams[of_key.next++ % kStreamsPerKey];
  if (stream == nullptr) {
    stream = std::make_unique<PooledCommStream>(runtime::new_stream(device, priority_));
  }
  return *stream;
}

}  // namespace openreg::distributed
