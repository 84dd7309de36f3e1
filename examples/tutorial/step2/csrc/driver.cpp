// SPDX-License-Identifier: BSD-3-Clause
// The device, made of the host: its memory is memory of the host, counted and limited.
#include "driver.h"

#include <array>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>

namespace {

constexpr int kDeviceCount = 2;
constexpr size_t kCapacity = size_t{256} << 20;  // bytes of each device
constexpr std::align_val_t kAlignment{64};

struct Memory {
  std::mutex mutex;
  size_t used = 0;
  std::unordered_map<void*, size_t> blocks;
};

Memory& memory_of(int device) {
  static auto* const memories = new std::array<Memory, kDeviceCount>();  // never deleted, as the process may end first
  return memories->at(static_cast<size_t>(device));
}

}  // namespace

int pocketGetDeviceCount() {
  return kDeviceCount;
}

void pocketMemGetInfo(int device, size_t* free, size_t* total) {
  Memory& memory = memory_of(device);
  const std::lock_guard<std::mutex> lock(memory.mutex);
  *free = kCapacity - memory.used;
  *total = kCapacity;
}

void* pocketMalloc(int device, size_t nbytes) {
  Memory& memory = memory_of(device);
  const std::lock_guard<std::mutex> lock(memory.mutex);
  if (nbytes > kCapacity - memory.used) {
    return nullptr;
  }
  void* address = operator new(nbytes, kAlignment, std::nothrow);
  if (address != nullptr) {
    memory.blocks[address] = nbytes;
    memory.used += nbytes;
  }
  return address;
}

void pocketFree(int device, void* address) {
  Memory& memory = memory_of(device);
  const std::lock_guard<std::mutex> lock(memory.mutex);
  const auto block = memory.blocks.find(address);
  memory.used -= block->second;
  memory.blocks.erase(block);
  operator delete(address, kAlignment);
}

void pocketMemcpy(void* destination, const void* source, size_t nbytes) {
  std::memcpy(destination, source, nbytes);
}
