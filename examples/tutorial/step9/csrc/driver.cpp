// SPDX-License-Identifier: BSD-3-Clause
// The device, made of the host: its memory is memory of the host, counted and limited, and a stream is a thread.
#include "driver.h"

#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <thread>
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

struct Kernel {
  void (*function)(void*);
  void* argument;
};

}  // namespace

struct pocketStream {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Kernel> kernels;
  uint64_t launched = 0;
  uint64_t done = 0;
};

namespace {

void run(pocketStream& stream) {
  std::unique_lock<std::mutex> lock(stream.mutex);
  while (true) {
    stream.changed.wait(lock, [&stream] { return !stream.kernels.empty(); });
    const Kernel kernel = stream.kernels.front();
    stream.kernels.pop_front();
    lock.unlock();
    kernel.function(kernel.argument);
    lock.lock();
    ++stream.done;
    stream.changed.notify_all();
  }
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

void* pocketMallocHost(size_t nbytes) {
  return operator new(nbytes, kAlignment, std::nothrow);
}

void pocketFreeHost(void* memory) {
  operator delete(memory, kAlignment);
}

pocketStream* pocketStreamCreate(int /*device*/) {
  auto* stream = new pocketStream();  // never deleted, and its thread never ends: the process may end first
  std::thread([stream] { run(*stream); }).detach();
  return stream;
}

uint64_t pocketLaunch(pocketStream* stream, void (*kernel)(void*), void* argument) {
  const std::lock_guard<std::mutex> lock(stream->mutex);
  stream->kernels.push_back({kernel, argument});
  stream->changed.notify_all();
  return ++stream->launched;
}

uint64_t pocketStreamLast(pocketStream* stream) {
  const std::lock_guard<std::mutex> lock(stream->mutex);
  return stream->launched;
}

int pocketStreamIsDone(pocketStream* stream, uint64_t ticket) {
  const std::lock_guard<std::mutex> lock(stream->mutex);
  return stream->done >= ticket ? 1 : 0;
}

void pocketStreamWait(pocketStream* stream, uint64_t ticket) {
  std::unique_lock<std::mutex> lock(stream->mutex);
  stream->changed.wait(lock, [stream, ticket] { return stream->done >= ticket; });
}
