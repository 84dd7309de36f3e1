// SPDX-License-Identifier: BSD-3-Clause
// Launches in C++ that Python calls with the GIL held.
#include <openreg/runtime/launch.h>
#include <openreg/runtime/launch_entry.h>
#include <openreg/runtime/stream.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace runtime = openreg::runtime;

extern "C" void launch_in_cpp(int64_t device, std::atomic<int64_t>* calls, int launches) {
  const c10::Stream stream = runtime::current_stream(static_cast<c10::DeviceIndex>(device));
  for (int i = 0; i < launches; ++i) {
    runtime::launch("count", stream, [calls] { ++*calls; });
  }
}

extern "C" orError_t launch_a_throw(const orLaunchEntry* entry) {
  orLaunch launch{};
  launch.size = sizeof(launch);
  launch.device = -1;
  launch.name = "throws";
  launch.function = [](void*, char*, size_t) -> orError_t { throw std::runtime_error("on purpose"); };
  return entry->launch(&launch);
}
