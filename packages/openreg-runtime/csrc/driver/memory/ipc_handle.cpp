// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: a handle is the number of a buffer in the kernel driver, whose tables contain the processes that may map it.
#include "memory/ipc_handle.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>

#include "base/error.h"
#include "platform/platform.h"

namespace openreg::driver {

namespace {

constexpr uint64_t kMagic = 0x324350496765724f;  // "OregIPC2"
// The greatest size of an allocation. No object is longer, and sums of two such sizes do not overflow.
constexpr uint64_t kMaxSize = std::numeric_limits<size_t>::max() / 4;

// Returns the FNV-1a hash of the members after the checksum.
uint64_t checksum(const IpcHandleLayout& layout) {
  unsigned char bytes[sizeof(layout)];
  std::memcpy(bytes, &layout, sizeof(layout));
  uint64_t sum = 0xcbf29ce484222325;
  for (size_t i = offsetof(IpcHandleLayout, process); i < sizeof(bytes); ++i) {
    sum = (sum ^ bytes[i]) * 0x100000001b3;
  }
  return sum;
}

}  // namespace

std::array<uint64_t, 2> make_ipc_token() {
  std::random_device random;
  const auto number = [&] { return (static_cast<uint64_t>(random()) << 32) | random(); };
  return {number(), number()};
}

orIpcMemHandle_t encode_ipc_handle(IpcHandleLayout layout) {
  layout.magic = kMagic;
  layout.checksum = checksum(layout);
  orIpcMemHandle_t handle{};
  std::memcpy(handle.reserved, &layout, sizeof(layout));
  return handle;
}

IpcHandleLayout decode_ipc_handle(const orIpcMemHandle_t& handle) {
  IpcHandleLayout layout{};
  std::memcpy(&layout, handle.reserved, sizeof(layout));
  const bool padded =
      std::all_of(handle.reserved + sizeof(layout), std::end(handle.reserved), [](char byte) { return byte == 0; });
  OPENREG_DRIVER_CHECK(
      layout.magic == kMagic && layout.checksum == checksum(layout) && padded, orErrorInvalidValue,
      "argument `handle` is not a handle from orIpcGetMemHandle(), or was damaged on its way; pass all ",
      sizeof(handle), " bytes unchanged, to a process with the same release of the driver");
  OPENREG_DRIVER_CHECK(layout.size > 0 && layout.size <= kMaxSize && layout.size % platform::page_size() == 0,
                       orErrorInvalidValue, "argument `handle` describes an allocation of ", layout.size,
                       " bytes, where only whole pages of ", platform::page_size(),
                       " bytes are shared; pass a handle from orIpcGetMemHandle() of a process on this machine");
  OPENREG_DRIVER_CHECK(layout.process != platform::process_id(), orErrorInvalidValue,
                       "argument `handle` describes memory of this very process (", layout.process,
                       "); use the address that it was made from");
  return layout;
}

}  // namespace openreg::driver
