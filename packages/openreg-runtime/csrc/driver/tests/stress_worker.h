// SPDX-License-Identifier: BSD-3-Clause
// In this part of the stress program, each thread changes and copies its buffers on random streams and checks their
// contents.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "openreg.h"
#include "stress_common.h"

namespace stress {

constexpr int kBuffers = 6;
constexpr int kStreams = 5;
constexpr int kSharedEvents = 8;
constexpr size_t kPinnedBytes = size_t{3} << 20;
constexpr size_t kKernelRunsPerCheck = 24;

// A buffer of device memory, whose element i is base + i.
struct Buffer {
  int device;
  size_t count;
  uint32_t base;
  void* address;
  orEvent_t last;  // recorded after the newest task that uses the buffer
};

// Events that all workers record and wait for. Such waits only add order, so they change no result. The events exist
// until the process ends.
class SharedEvents {
 public:
  SharedEvents() {
    for (auto& event : events_) {
      CHECK(orEventCreateWithFlags(&event, orEventEnableTiming) == orSuccess);
    }
  }
  orEvent_t any(Random& random) const { return events_[pick(random, kSharedEvents)]; }

 private:
  orEvent_t events_[kSharedEvents]{};
};

inline const SharedEvents& shared_events() {
  static const SharedEvents events;
  return events;
}

class Worker {
 public:
  explicit Worker(uint64_t seed) : random_(seed), shared_(shared_events()) {}

  void run() {
    CHECK(orMallocHost(&pinned_, kPinnedBytes) == orSuccess);
    for (int i = 0; i < kStreams; ++i) {
      streams_.push_back(make_stream());
    }
    for (int i = 0; i < kBuffers; ++i) {
      buffers_.push_back(make_buffer());
    }
    while (!stop) {
      step();
    }
    for (Buffer& buffer : buffers_) {
      check(buffer);
      destroy(buffer);
    }
    for (orStream_t stream : streams_) {
      CHECK(orStreamDestroy(stream) == orSuccess);
    }
    CHECK(orFreeHost(pinned_) == orSuccess);
  }

 private:
  void step() {
    Buffer& buffer = buffers_[pick(random_, kBuffers)];
    switch (pick(random_, 12)) {
      case 0:
        return check(buffer);
      case 1:
        return upload(buffer);
      case 2:
      case 3:
        return copy(buffer);
      case 4:
        return disturb();
      case 5:
        return replace_stream();
      case 6:
        if (pick(random_, 4) == 0) {
          destroy(buffer);
          buffer = make_buffer();
        }
        return;
      default:
        for (size_t i = 0; i < kKernelRunsPerCheck; ++i) {
          add(buffer);
        }
    }
  }

  orStream_t any_stream() { return streams_[pick(random_, kStreams)]; }

  orStream_t make_stream() {
    CHECK(orSetDevice(static_cast<int>(pick(random_, kWorkDevices))) == orSuccess);
    orStream_t stream = nullptr;
    CHECK(orStreamCreateWithPriority(&stream, 0, -static_cast<int>(pick(random_, 4))) == orSuccess);
    return stream;
  }

  Buffer make_buffer() {
    Buffer buffer{};
    buffer.device = static_cast<int>(pick(random_, kWorkDevices));
    buffer.count = 1 + pick(random_, pick(random_, 8) == 0 ? kPinnedBytes / sizeof(uint32_t) : 20000);
    CHECK(orSetDevice(buffer.device) == orSuccess);
    CHECK(orMalloc(&buffer.address, buffer.count * sizeof(uint32_t)) == orSuccess);
    CHECK(orEventCreate(&buffer.last) == orSuccess);
    upload(buffer);
    return buffer;
  }

  void destroy(Buffer& buffer) {
    CHECK(orEventSynchronize(buffer.last) == orSuccess);  // orFree() waits only for tasks of the owning device
    CHECK(orFree(buffer.address) == orSuccess);
    CHECK(orEventDestroy(buffer.last) == orSuccess);
  }

  // Returns a stream whose later tasks are executed after the newest task that uses the buffer.
  orStream_t begin(const Buffer& buffer) {
    orStream_t stream = any_stream();
    CHECK(orStreamWaitEvent(stream, buffer.last, 0) == orSuccess);
    return stream;
  }

  static void end(Buffer& buffer, orStream_t stream) { CHECK(orEventRecord(buffer.last, stream) == orSuccess); }

  void add(Buffer& buffer) {
    orStream_t stream = begin(buffer);
    const auto amount = static_cast<uint32_t>(random_());
    CHECK(launch(stream, add_kernel, {kernel_view(buffer.address), buffer.count, amount}));
    buffer.base += amount;
    end(buffer, stream);
  }

  void upload(Buffer& buffer) {
    buffer.base = static_cast<uint32_t>(random_());
    orStream_t stream = begin(buffer);
    const size_t size = buffer.count * sizeof(uint32_t);
    const bool from_pinned = pick(random_, 2) == 0;
    std::vector<uint32_t> pageable(from_pinned ? 0 : buffer.count);
    uint32_t* source = from_pinned ? static_cast<uint32_t*>(pinned_) : pageable.data();
    for (size_t i = 0; i < buffer.count; ++i) {
      source[i] = buffer.base + static_cast<uint32_t>(i);
    }
    CHECK(orMemcpyAsync(buffer.address, source, size, orMemcpyHostToDevice, stream) == orSuccess);
    if (from_pinned) {
      CHECK(orStreamSynchronize(stream) == orSuccess);  // because the pinned buffer is used again
    } else {
      std::fill(pageable.begin(), pageable.end(), 0xdeadbeefU);
    }
    end(buffer, stream);
  }

  // Copies from another buffer, perhaps of another device, that is at least as long.
  void copy(Buffer& destination) {
    Buffer& source = buffers_[pick(random_, buffers_.size())];
    if (&source == &destination || source.count < destination.count) {
      return;
    }
    const size_t size = destination.count * sizeof(uint32_t);
    orStream_t stream = begin(destination);
    CHECK(orStreamWaitEvent(stream, source.last, 0) == orSuccess);
    if (pick(random_, 4) == 0) {  // the function that takes both device indices
      CHECK(orMemcpyPeerAsync(destination.address, destination.device, source.address, source.device, size, stream) ==
            orSuccess);
    } else if (pick(random_, 8) == 0) {  // the function that blocks
      CHECK(orStreamSynchronize(stream) == orSuccess);
      CHECK(orMemcpy(destination.address, source.address, size, orMemcpyDefault) == orSuccess);
    } else {
      CHECK(orMemcpyAsync(destination.address, source.address, size, orMemcpyDeviceToDevice, stream) == orSuccess);
    }
    destination.base = source.base;
    end(destination, stream);
    end(source, stream);
  }

  void check(Buffer& buffer) {
    orStream_t stream = begin(buffer);
    const size_t size = buffer.count * sizeof(uint32_t);
    const bool to_pinned = pick(random_, 2) == 0;
    std::vector<uint32_t> pageable(to_pinned ? 0 : buffer.count);
    uint32_t* target = to_pinned ? static_cast<uint32_t*>(pinned_) : pageable.data();
    if (to_pinned || orTryMemcpyToHost(target, buffer.address, size, stream) != orSuccess) {
      CHECK(orMemcpyAsync(target, buffer.address, size, orMemcpyDefault, stream) == orSuccess);
    }
    end(buffer, stream);
    if (to_pinned) {
      CHECK(orEventSynchronize(buffer.last) == orSuccess);
    }
    for (size_t i = 0; i < buffer.count; ++i) {
      CHECK(target[i] == buffer.base + static_cast<uint32_t>(i));
    }
    checked_bytes.fetch_add(size, std::memory_order_relaxed);
  }

  // Makes calls that must not change any data.
  void disturb() {
    orStream_t stream = any_stream();
    float milliseconds = 0;
    switch (pick(random_, 6)) {
      case 0:
        CHECK(orStreamDelay(stream, random_() % 200'000) == orSuccess);
        break;
      case 1:
        CHECK(orStreamWaitEvent(stream, shared_.any(random_), 0) == orSuccess);
        break;
      case 2:
        CHECK(orEventRecord(shared_.any(random_), stream) == orSuccess);
        break;
      case 3: {
        const orError_t code = orEventElapsedTime(&milliseconds, shared_.any(random_), shared_.any(random_));
        CHECK(code == orSuccess || code == orErrorNotReady || code == orErrorInvalidValue);
        break;
      }
      case 4: {
        const orError_t code = orStreamQuery(stream);
        CHECK(code == orSuccess || code == orErrorNotReady);
        CHECK(orLaunchHostFunc(stream, [](void*) {}, nullptr) == orSuccess);
        break;
      }
      default:
        CHECK(orSetDevice(static_cast<int>(pick(random_, kWorkDevices))) == orSuccess);
        CHECK(orDeviceSynchronize() == orSuccess);
    }
  }

  void replace_stream() {
    orStream_t& stream = streams_[pick(random_, kStreams)];
    CHECK(orStreamDestroy(stream) == orSuccess);
    stream = make_stream();
  }

  Random random_;
  const SharedEvents& shared_;
  void* pinned_ = nullptr;
  std::vector<orStream_t> streams_;
  std::vector<Buffer> buffers_;
};

inline void work_until_stopped(uint64_t seed) {
  Worker(seed).run();
}

}  // namespace stress
