// SPDX-License-Identifier: BSD-3-Clause
// The interface through which the caching allocator uses its device, the settings and PyTorch's profiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

namespace openreg::runtime {

inline constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

// A stream of any device. Streams of two devices may have equal ids.
struct StreamKey {
  int device = 0;
  int64_t id = 0;
  bool operator==(const StreamKey&) const = default;
};

// A fence: a marker in a stream that is signaled when all earlier tasks of the stream are complete. The destructor
// releases the driver's resources of the marker.
class StreamFence {
 public:
  virtual ~StreamFence() = default;
  virtual bool is_signaled() const noexcept = 0;
};

struct MemoryInfo {
  size_t free = 0;   // bytes
  size_t total = 0;  // bytes
};

// The values of PYTORCH_ALLOC_CONF that only rare paths read.
struct SegmentSettings {
  size_t large_segment = size_t{20} << 20;           // bytes of a segment for requests above 1 and below 10 MiB
  size_t max_non_split_rounding = size_t{20} << 20;  // bytes by which a block may exceed an oversize request
  double garbage_collection_threshold = 0;           // fraction of what may be reserved; 0 disables collection
  double memory_fraction = 1;                        // fraction of the capacity that may be reserved
};

// The device, settings and profiler as the caching allocator uses them. Thread-safe. The allocator holds its mutex in
// calls of all functions except synchronize(), so these must neither block on the device nor take the GIL. It calls
// poison() without the mutex, too.
class MemoryProvider {
 public:
  virtual ~MemoryProvider() = default;

  // Returns `size` bytes of device memory. Null if the device has no room. May throw on other failures of the device.
  virtual char* allocate(size_t size) = 0;
  virtual void release(char* address) noexcept = 0;
  virtual MemoryInfo memory_info() = 0;
  // Blocks until all tasks of the device are complete. Ignores a failure of the device, because none of its tasks
  // remains then.
  virtual void synchronize() = 0;
  // Records a fence after the tasks that the stream contains now.
  virtual std::unique_ptr<StreamFence> mark(StreamKey stream) noexcept = 0;
  virtual SegmentSettings settings() = 0;

  // poisons() returns true if memory with undefined content is filled with the poison pattern. poison() enqueues that
  // fill on `stream`; `size` is in bytes.
  virtual bool poisons() const { return false; }
  virtual void poison(char* /*address*/, size_t /*size*/, int64_t /*stream*/) noexcept {}

  // Reports an allocation (positive `change`) or release to PyTorch's profiler. All sizes are in bytes; `allocated` and
  // `reserved` are the totals of the device after it.
  virtual void report(void* /*address*/, int64_t /*change*/, size_t /*allocated*/, size_t /*reserved*/) {}
};

}  // namespace openreg::runtime
