// SPDX-License-Identifier: BSD-3-Clause
// Tests of device memory, its two views and its capacity, and of pinned memory. The implementations for the operating
// systems differ most in these.
#pragma once

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "checks_common.h"
#include "openreg.h"

namespace checks {

[[noreturn]] inline void end_well(int /*signal*/) {
  std::_Exit(0);
}

// Reads `address` on the host and ends the process: with exit status 0 if the access faults, otherwise with 1.
[[noreturn]] inline void read_as_host(const void* address) {
#if defined(SIGBUS)
  std::signal(SIGBUS, end_well);
#endif
  std::signal(SIGSEGV, end_well);
  const char byte = *static_cast<const volatile char*>(address);
  std::fprintf(stderr, "the host read %d from device memory\n", byte);
  std::_Exit(1);
}

inline void the_host_cannot_read_device_memory() {
  read_as_host(allocate(kPage));
}

inline void the_host_cannot_read_what_no_one_allocated() {
  read_as_host(static_cast<char*>(allocate(kPage)) + kMiB);
}

inline void the_kernel_view_is_the_same_memory() {
  void* address = allocate(2 * kPage);
  char* kernel_address = view(address);
  CHECK(kernel_address != address);
  launch(nullptr, [=] { std::fill_n(kernel_address + kPage - 2, 4, 'A'); });
  CHECK_OK(orDeviceSynchronize());
  CHECK(download(static_cast<char*>(address) + kPage - 2, 4) == "AAAA");
  upload(address, "from the host");
  std::string seen;
  launch(nullptr, [&] { seen.assign(kernel_address, 13); });
  CHECK_OK(orDeviceSynchronize());
  CHECK(seen == "from the host");
  CHECK_OK(orFree(address));
}

inline void one_offset_serves_all_devices() {
  void* addresses[2];
  for (int device = 0; device < 2; ++device) {
    CHECK_OK(orSetDevice(device));
    addresses[device] = allocate(kPage);
    std::fill_n(view(addresses[device]), kPage, static_cast<char>('0' + device));
  }
  CHECK(download(addresses[0], 1) == "0" && download(addresses[1], 1) == "1");
  for (void* address : addresses) {
    CHECK_OK(orFree(address));
  }
}

inline void capacity_is_exact() {
  void* whole = allocate(kCapacity);
  size_t free = 1;
  size_t total = 0;
  CHECK_OK(orMemGetInfo(&free, &total));
  CHECK(free == 0 && total == kCapacity);
  void* more = nullptr;
  CHECK(orMalloc(&more, 1) == orErrorMemoryAllocation && more == nullptr);
  CHECK(last_message_has("1 bytes requested"));
  char* last = static_cast<char*>(whole) + kCapacity - 1;
  upload(last, "z");
  CHECK(download(last, 1) == "z");
  CHECK_OK(orFree(whole));
  CHECK_OK(orMemGetInfo(&free, &total));
  CHECK(free == kCapacity);
  CHECK(orFree(whole) == orErrorInvalidDevicePointer && last_message_has("freed before"));
}

struct Block {
  void* address;
  size_t size;
  char mark;
};

inline void check_block(const Block& block) {
  const char* bytes = view(block.address);
  CHECK(bytes[0] == block.mark && bytes[block.size / 2] == block.mark && bytes[block.size - 1] == block.mark);
}

// Allocations keep their contents, whatever is allocated and freed beside them. At the end all free ranges are merged,
// because one allocation of the whole capacity succeeds.
inline void allocations_of_any_size_in_any_order() {
  stress::Random random(1);
  std::vector<Block> blocks;
  for (int step = 0; step < 2000; ++step) {
    const size_t size = 1 + stress::pick(random, 3) * stress::pick(random, 2 * kMiB);
    void* address = nullptr;
    if (stress::pick(random, 2) == 0 && orMalloc(&address, size) == orSuccess) {
      blocks.push_back({address, size, static_cast<char>(step)});
      std::fill_n(view(address), size, static_cast<char>(step));
    } else if (!blocks.empty()) {
      std::swap(blocks[stress::pick(random, blocks.size())], blocks.back());
      check_block(blocks.back());
      CHECK_OK(orFree(blocks.back().address));
      blocks.pop_back();
    }
  }
  CHECK(!blocks.empty());
  for (const Block& block : blocks) {
    check_block(block);
    CHECK_OK(orFree(block.address));
  }
  CHECK_OK(orFree(allocate(kCapacity)));
}

inline void pinned_memory_is_copied_asynchronously() {
  void* pinned = nullptr;
  CHECK_OK(orMallocHost(&pinned, 3 * kPage + 1));
  CHECK(reinterpret_cast<uintptr_t>(pinned) % kPage == 0);
  orPointerAttributes attributes{};
  CHECK_OK(orPointerGetAttributes(&attributes, static_cast<char*>(pinned) + 3 * kPage));
  CHECK(attributes.type == orMemoryTypeHost);
  auto* bytes = static_cast<char*>(pinned);
  std::fill_n(bytes, kPage, 'p');
  void* address = allocate(kPage);
  Gate gate(nullptr);
  CHECK_OK(orMemcpyAsync(address, bytes, kPage, orMemcpyHostToDevice, nullptr));
  CHECK_OK(orMemcpyAsync(bytes + kPage, address, kPage, orMemcpyDeviceToHost, nullptr));
  CHECK(orStreamQuery(nullptr) == orErrorNotReady);
  gate.open();
  CHECK_OK(orDeviceSynchronize());
  CHECK(std::equal(bytes, bytes + kPage, bytes + kPage));
  CHECK_OK(orFree(address));
  CHECK_OK(orFreeHost(pinned));
}

inline void copies_between_devices() {
  void* first = allocate(kMiB);
  CHECK_OK(orMemset(first, 'x', kMiB));
  CHECK_OK(orSetDevice(1));
  void* second = allocate(kMiB);
  CHECK_OK(orMemcpyPeer(second, 1, first, 0, kMiB));
  CHECK(download(second, kMiB) == std::string(kMiB, 'x'));
  CHECK_OK(orFree(first));
  CHECK_OK(orFree(second));
}

inline void poison_fills_what_is_allocated() {
  void* address = allocate(kPage);
  CHECK(download(address, kPage) == std::string(kPage, '\xff'));
  CHECK_OK(orFree(address));
}

}  // namespace checks
