// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the copy engine of the device moves the bytes.
#include "engine/copy_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <thread>

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define OPENREG_HAS_STREAMING_STORES
#endif

namespace openreg::driver {

namespace {

// In bytes. A copy of this size takes many times longer than the creation of a thread.
constexpr size_t kHalvingThreshold = size_t{8} << 20;
// In bytes. A copy of this size displaces most of what a cache holds, and its destination does not stay there either.
constexpr size_t kStreamingThreshold = size_t{32} << 20;

// Copies a range with stores that bypass the caches. An ordinary store first reads the line that it overwrites, which
// is a third of the memory's traffic.
void stream_bytes(char* destination, const char* source, size_t size) noexcept {
#ifdef OPENREG_HAS_STREAMING_STORES
  constexpr size_t kLine = 64;  // the stores of a whole line are combined
  const size_t head = std::min(size, (kLine - reinterpret_cast<uintptr_t>(destination) % kLine) % kLine);
  std::memcpy(destination, source, head);
  size_t done = head;
  for (; done + kLine <= size; done += kLine) {
    for (size_t i = 0; i < kLine; i += sizeof(__m128i)) {
      const __m128i value = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + done + i));
      _mm_stream_si128(reinterpret_cast<__m128i*>(destination + done + i), value);
    }
  }
  _mm_sfence();  // orders these stores before those that report the copy as complete
  std::memcpy(destination + done, source + done, size - done);
#else
  std::memcpy(destination, source, size);
#endif
}

}  // namespace

void copy_memory(void* destination, const void* source, size_t size) noexcept {
  auto* const to = static_cast<char*>(destination);
  const auto* const from = static_cast<const char*>(source);
  const bool overlaps = to < from + size && from < to + size;
  if (size < kHalvingThreshold || overlaps) {
    std::memmove(to, from, size);
    return;
  }
  const auto copy = [=](size_t begin, size_t end) {
    if (size < kStreamingThreshold) {
      std::memcpy(to + begin, from + begin, end - begin);
    } else {
      stream_bytes(to + begin, from + begin, end - begin);
    }
  };
  if (std::thread::hardware_concurrency() < 2) {
    copy(0, size);
    return;
  }
  // One core does not reach the bandwidth of the memory.
  std::thread second;
  try {
    second = std::thread(copy, 0, size / 2);
  } catch (const std::exception&) {
    copy(0, size / 2);  // the system has no thread or memory left
  }
  copy(size / 2, size);
  if (second.joinable()) {
    second.join();
  }
}

}  // namespace openreg::driver
