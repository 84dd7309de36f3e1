// SPDX-License-Identifier: BSD-3-Clause
// A fake device for tests of the caching allocator. Its memory is host memory, so that sanitizers check each access,
// and the test decides when a task of its streams is complete.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <new>

#include "cache/device_caching_allocator.h"
#include "cache/memory_provider.h"

namespace memory_test {

namespace runtime = openreg::runtime;

[[noreturn]] inline void fail(const char* what, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what);
  std::_Exit(1);
}

#define CHECK(condition)                                   \
  do {                                                     \
    if (!(condition)) {                                    \
      ::memory_test::fail(#condition, __FILE__, __LINE__); \
    }                                                      \
  } while (false)

inline constexpr size_t kMiB = size_t{1} << 20;

class FakeDevice final : public runtime::MemoryProvider {
 public:
  explicit FakeDevice(size_t capacity) : capacity_(capacity) {}
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;
  ~FakeDevice() override {
    for (const auto& [address, size] : sizes_) {
      ::operator delete(address, kAlignment);
    }
  }

  char* allocate(size_t size) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (size > capacity_ - used_) {
      return nullptr;
    }
    used_ += size;
    char* address = static_cast<char*>(::operator new(size, kAlignment));
    sizes_[address] = size;
    return address;
  }
  void release(char* address) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = sizes_.find(address);
    CHECK(found != sizes_.end());
    used_ -= found->second;
    sizes_.erase(found);
    ::operator delete(address, kAlignment);
  }
  runtime::MemoryInfo memory_info() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return {capacity_ - used_, capacity_};
  }
  void synchronize() override {
    ++waits;
    finish_work();
  }
  std::unique_ptr<runtime::StreamFence> record_fence(runtime::StreamKey /*stream*/) noexcept override {
    return std::make_unique<Mark>(*this);
  }
  runtime::SegmentSettings settings() override { return segment_settings; }

  // What was marked so far is reached.
  void finish_work() {
    const uint64_t made = marks_made_;
    uint64_t reached = marks_reached_;
    while (reached < made && !marks_reached_.compare_exchange_weak(reached, made)) {
    }
  }
  size_t used() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return used_;
  }

  runtime::SegmentSettings segment_settings;  // set before the first allocation
  std::atomic<int> waits{0};

 private:
  struct Mark final : runtime::StreamFence {
    explicit Mark(FakeDevice& of) : device(of), number(++of.marks_made_) {}
    bool is_signaled() const noexcept override { return number <= device.marks_reached_; }
    FakeDevice& device;
    const uint64_t number;
  };
  static constexpr std::align_val_t kAlignment{512};

  const size_t capacity_;
  std::mutex mutex_;
  size_t used_ = 0;
  std::map<char*, size_t> sizes_;
  std::atomic<uint64_t> marks_made_{0};
  std::atomic<uint64_t> marks_reached_{0};
};

inline runtime::AllocParams request_of(size_t bytes, int64_t stream = 0) {
  return {bytes, runtime::round_up(std::max(bytes, runtime::kMinBlock), runtime::kMinBlock), stream};
}

// Null when the device is full.
inline char* allocate(runtime::DeviceCachingAllocator& cache, size_t bytes, int64_t stream = 0) {
  runtime::OomReport failure;
  return static_cast<char*>(cache.allocate(request_of(bytes, stream), failure));
}

// What holds at any time: the blocks of a segment follow each other and fill it, free neighbors are joined, and the
// statistics agree.
inline void check_segments(runtime::DeviceCachingAllocator& cache) {
  cache.inspect([](const runtime::DeviceCachingAllocator::SegmentMap& segments, runtime::Statistics& statistics) {
    size_t reserved = 0;
    size_t allocated = 0;
    size_t active = 0;
    size_t split = 0;
    for (const auto& [address, segment] : segments) {
      CHECK(address == segment->address && segment->first->address == address);
      reserved += segment->size;
      size_t size = 0;
      for (const runtime::Block* block = segment->first; block != nullptr; block = block->next) {
        CHECK(block->segment == segment.get() && block->address == address + size);
        CHECK(block->next == nullptr || block->next->previous == block);
        CHECK(block->next == nullptr || !block->is_free() || !block->next->is_free());
        size += block->size;
        allocated += block->is_allocated ? block->size : 0;
        active += block->is_free() ? 0 : block->size;
        split += block->is_free() && !block->is_whole_segment() ? block->size : 0;
      }
      CHECK(size == segment->size);
    }
    CHECK(statistics.reserved_bytes.current() == reserved);
    CHECK(statistics.allocated_bytes.current() == allocated);
    CHECK(statistics.active_bytes.current() == active);
    CHECK(statistics.inactive_split_bytes.current() == split);
    CHECK(statistics.segment.current() == segments.size());
  });
}

}  // namespace memory_test
