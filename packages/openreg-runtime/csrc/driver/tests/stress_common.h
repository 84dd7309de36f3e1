// SPDX-License-Identifier: BSD-3-Clause
// Helpers of all parts of the stress program: counters, a check that ends the process if it fails, and a launch that is
// counted.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "openreg.h"

namespace stress {

constexpr int kDevices = 4;
constexpr int kWorkDevices = 2;   // devices 0 and 1 stay healthy
constexpr int kBrokenDevice = 2;  // kernels of this device fail
constexpr int kLostDevice = 3;    // this device is lost after a while

inline std::atomic<uint64_t> launched{0};
inline std::atomic<uint64_t> released{0};
inline std::atomic<uint64_t> checked_bytes{0};
inline std::atomic<bool> stop{false};

[[noreturn]] inline void fail(const char* what, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, orGetLastErrorMessage());
  std::_Exit(1);
}

#define CHECK(condition)                              \
  do {                                                \
    if (!(condition)) {                               \
      ::stress::fail(#condition, __FILE__, __LINE__); \
    }                                                 \
  } while (false)

using Random = std::mt19937_64;

inline size_t pick(Random& random, size_t count) {
  return static_cast<size_t>(random() % count);
}

inline void pause_milliseconds(uint64_t count) {
  std::this_thread::sleep_for(std::chrono::milliseconds(count));
}

inline uint32_t* kernel_view(void* address) {
  ptrdiff_t offset = 0;
  CHECK(orGetKernelViewOffset(&offset) == orSuccess);
  return reinterpret_cast<uint32_t*>(static_cast<char*>(address) + offset);
}

struct AddState {
  uint32_t* data;
  size_t count;
  uint32_t amount;
};

inline orError_t add_kernel(void* state, char*, size_t) {
  const auto* add = static_cast<const AddState*>(state);
  for (size_t i = 0; i < add->count; ++i) {
    add->data[i] += add->amount;
  }
  return orSuccess;
}

inline orError_t failing_kernel(void*, char* message, size_t size) {
  std::snprintf(message, size, "on purpose");
  return orErrorUnknown;
}

inline void release_add(void* state) {
  delete static_cast<AddState*>(state);
  released.fetch_add(1, std::memory_order_relaxed);
}

// Launches a kernel. Returns true if it was enqueued, and false if the device has failed or the stream was destroyed.
inline bool launch(orStream_t stream, orKernelFunction_t function, const AddState& arguments) {
  auto* state = new AddState(arguments);
  const orKernel kernel{"stress", function, state, &release_add};
  orError_t code = orTryLaunchKernel(stream, &kernel);
  if (code == orErrorNotReady) {
    code = orLaunchKernel(stream, &kernel);  // may block
  }
  if (code == orSuccess) {
    launched.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  CHECK(code == orErrorLaunchFailure || code == orErrorInvalidResourceHandle);
  delete state;
  return false;
}

}  // namespace stress
