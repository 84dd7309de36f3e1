// SPDX-License-Identifier: BSD-3-Clause
// The interface through which the caching allocator uses its device, the settings and PyTorch's profiler. Tests
// implement it by a fake device.
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

// The free and the total memory of a device.
struct MemoryInfo {
  size_t free = 0;   // bytes
  size_t total = 0;  // bytes
};

// The settings of PYTORCH_ALLOC_CONF that the allocator reads only when it allocates segments or serves oversize
// requests (see AllocParams in size_policy.h).
struct SegmentSettings {
  size_t large_segment = size_t{20} << 20;           // bytes of a segment for requests above 1 and below 10 MiB
  size_t max_non_split_rounding = size_t{20} << 20;  // bytes by which a block may exceed an oversize request
  double garbage_collection_threshold = 0;           // fraction of what may be reserved; 0 disables collection
  double memory_fraction = 1;                        // fraction of the capacity that may be reserved
};

// The device, the settings and the profiler as the caching allocator uses them. Thread-safe. The allocator holds its
// mutex while it calls allocate(), release(), memory_info(), record_fence(), settings(), report() and poison_freed().
// So these functions must not acquire the GIL. Only two of them may block on the device: release() until tasks that
// were enqueued since synchronize() are complete, and poison_freed() while the stream's queue is full. The allocator
// calls synchronize() and poison_allocated() without its mutex, and poisons() only in its constructor.
class MemoryProvider {
 public:
  virtual ~MemoryProvider() = default;

  // Returns the address of `size` new bytes of device memory, or null if the device has no room. May throw if the
  // device fails in another way.
  virtual char* allocate(size_t size) = 0;
  // Releases memory of allocate().
  virtual void release(char* address) noexcept = 0;
  virtual MemoryInfo memory_info() = 0;
  // Blocks until all tasks of the device are complete. Ignores a failure of the device, because a failed device skips
  // its remaining tasks.
  virtual void synchronize() = 0;
  // Records a fence after the tasks that the stream contains now.
  virtual std::unique_ptr<StreamFence> record_fence(StreamKey stream) noexcept = 0;
  virtual SegmentSettings settings() = 0;

  // poisons() returns true if memory with undefined content is filled with the poison pattern (OPENREG_POISON).
  // The other two enqueue that fill of an allocated and of a freed block on a stream; `size` is in bytes.
  virtual bool poisons() const { return false; }
  virtual void poison_allocated(char* /*address*/, size_t /*size*/, int64_t /*stream*/) {}
  virtual void poison_freed(char* /*address*/, size_t /*size*/, int64_t /*stream*/) noexcept {}

  // Reports an allocation or a release to PyTorch's profiler. All sizes are in bytes. `change` is positive for an
  // allocation and negative for a release. `allocated` and `reserved` are the totals of the device after it.
  virtual void report(void* /*address*/, int64_t /*change*/, size_t /*allocated*/, size_t /*reserved*/) {}
};

}  // namespace openreg::runtime
