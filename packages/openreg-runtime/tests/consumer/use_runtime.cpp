// SPDX-License-Identifier: BSD-3-Clause
// The torch integration from C++ without Python: memory of the caching allocator, a kernel, a copy.
#include <openreg.h>
#include <openreg/runtime/allocator.h>
#include <openreg/runtime/device.h>
#include <openreg/runtime/launch.h>
#include <openreg/runtime/status.h>
#include <openreg/runtime/stream.h>

#include <cstdio>

namespace runtime = openreg::runtime;

int main() {
  constexpr c10::DeviceIndex kDevice = 1;
  constexpr int kCount = 1000;

  runtime::ensure_initialized();
  runtime::set_device(kDevice);
  c10::DataPtr memory = runtime::device_allocator().allocate(kCount * sizeof(int));
  if (memory.device() != c10::Device(runtime::kDeviceType, kDevice)) {
    std::fprintf(stderr, "allocated on %s\n", memory.device().str().c_str());
    return 1;
  }

  int* numbers = static_cast<int*>(runtime::kernel_view(memory.get()));
  runtime::launch("consumer_fill", kDevice, [numbers] {
    for (int i = 0; i < kCount; ++i) {
      numbers[i] = i;
    }
  });
  runtime::synchronize_device(kDevice);

  int last = -1;
  const char* address = static_cast<const char*>(memory.get()) + (kCount - 1) * sizeof(int);
  OPENREG_CHECK(orMemcpy(&last, address, sizeof last, orMemcpyDeviceToHost));
  if (last != kCount - 1) {
    std::fprintf(stderr, "the kernel wrote %d instead of %d\n", last, kCount - 1);
    return 1;
  }
  std::printf("runtime: %d devices, the kernel wrote %d\n", runtime::device_count(), last);
  return 0;
}
