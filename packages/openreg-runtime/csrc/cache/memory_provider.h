// SPDX-License-Identifier: BSD-3-Clause
// What the caching allocator of one device needs of that device, of the settings and of PyTorch's profiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

namespace openreg::runtime {

inline constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

// A stream of any device. Two devices may give their streams the same ids.
struct StreamKey {
  int device = 0;
  int64_t id = 0;
  bool operator==(const StreamKey&) const = default;
};

// A point in the work of a stream. Its end is the end of what the driver keeps for it.
class StreamFence {
 public:
  virtual ~StreamFence() = default;
  virtual bool is_signaled() const noexcept = 0;
};

struct MemoryInfo {
  size_t free = 0;  // bytes, as is the next
  size_t total = 0;
};

// PYTORCH_ALLOC_CONF, as far as only rare paths ask for it.
struct SegmentSettings {
  size_t large_segment = size_t{20} << 20;           // bytes of a segment for requests up to half of that
  size_t max_non_split_rounding = size_t{20} << 20;  // bytes that a block above max_split_size may exceed a request by
  double garbage_collection_threshold = 0;           // a part of what the cache may hold; 0: no collection
  double memory_fraction = 1;                        // the part of the capacity that the cache may hold
};

// Thread-safe. All functions but synchronize() are called with the cache's lock held, so they neither wait for the
// device nor take the GIL.
class MemoryProvider {
 public:
  virtual ~MemoryProvider() = default;

  // A range of the device, or null when it has no room.
  virtual char* allocate(size_t size) = 0;
  virtual void release(char* address) noexcept = 0;
  virtual MemoryInfo memory_info() = 0;
  // Waits for all work of the device. Called without the lock. A failed device has nothing left to wait for.
  virtual void synchronize() = 0;
  virtual std::unique_ptr<StreamFence> mark(StreamKey stream) noexcept = 0;
  virtual SegmentSettings settings() = 0;

  // Whether memory whose content is undefined is filled, and the filling, which is work of the stream.
  virtual bool poisons() const { return false; }
  virtual void poison(char* /*address*/, size_t /*size*/, int64_t /*stream*/) noexcept {}

  // Tells PyTorch's profiler: `change` in bytes is positive for an allocation, the totals are those after it.
  virtual void report(void* /*address*/, int64_t /*change*/, size_t /*allocated*/, size_t /*reserved*/) {}
};

}  // namespace openreg::runtime
