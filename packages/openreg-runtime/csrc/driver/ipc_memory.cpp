// SPDX-License-Identifier: BSD-3-Clause
// The window through which processes see each other's device memory.
//
// REAL HW: the memory is the card's, which the kernel driver maps for several processes; nothing is moved. Here private
// memory becomes a shared object when it is exported, at the same addresses.
#include "ipc_memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <random>

#include "error.h"

namespace openreg::driver {

using platform::SharedMemory;

// The beginning of a shared object; the bytes of the allocation start a granule later. Processes read it at once.
struct SharedHeader {
  std::array<uint64_t, 2> token;
  std::atomic<uint32_t> alive;  // 0 when the allocation was freed
};

namespace {

constexpr size_t kDataOffset = platform::kSharedGranule;
constexpr uint64_t kMagic = 0x314350496765724f;  // "OregIPC1"

// What a handle says.
struct Description {
  uint64_t magic;
  uint64_t checksum;  // of what follows
  uint64_t process;
  std::array<uint64_t, 2> token;  // the same as in the object: process numbers and names are used again
  uint64_t size;                  // bytes of the allocation
  char name[sizeof(SharedMemory::name)];
};
static_assert(sizeof(Description) <= sizeof(orIpcMemHandle_t));

// FNV-1a. It tells damage, not intent: whoever may open the object may also write into it.
uint64_t checksum(const Description& description) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&description);
  uint64_t sum = 0xcbf29ce484222325;
  for (size_t i = offsetof(Description, process); i < sizeof(description); ++i) {
    sum = (sum ^ bytes[i]) * 0x100000001b3;
  }
  return sum;
}

std::array<uint64_t, 2> make_token() {
  std::random_device random;
  const auto number = [&] { return (static_cast<uint64_t>(random()) << 32) | random(); };
  return {number(), number()};
}

Description read_handle(const orIpcMemHandle_t& handle) {
  Description description{};
  std::memcpy(&description, handle.reserved, sizeof(description));
  OPENREG_DRIVER_CHECK(
      description.magic == kMagic && description.checksum == checksum(description), orErrorInvalidValue,
      "argument `handle` is not a handle from orIpcGetMemHandle(), or was damaged on its way; pass all ",
      sizeof(handle), " bytes unchanged");
  OPENREG_DRIVER_CHECK(description.process != platform::process_id(), orErrorInvalidValue,
                       "argument `handle` describes memory of this very process (", description.process,
                       "); use the address that it was made from");
  return description;
}

// An opened object, closed at the end of a scope; mappings stay.
struct OpenedObject {
  explicit OpenedObject(const Description& description) : description_(description) {
    check(platform::open_shared(description.name, memory));
    check(memory.size >= kDataOffset && memory.size - kDataOffset >= description.size);
    auto* header = static_cast<SharedHeader*>(platform::map_shared(memory, 0, platform::page_size()));
    const bool alive = header != nullptr && header->token == description.token && header->alive == 1;
    if (header != nullptr) {
      platform::unmap_shared(header, platform::page_size());
    }
    check(alive);
  }
  OpenedObject(const OpenedObject&) = delete;
  OpenedObject& operator=(const OpenedObject&) = delete;
  ~OpenedObject() { platform::close_shared(memory); }

  SharedMemory memory;

 private:
  void check(bool holds) {
    if (!holds) {
      platform::close_shared(memory);  // a constructor that throws has no destructor
      throw Error(orErrorInvalidValue,
                  join("the memory of process ", description_.process,
                       " that argument `handle` describes is gone: the "
                       "process has ended or freed it, or this process may not see it; keep the allocation until all "
                       "receivers have opened it"));
    }
  }

  const Description& description_;
};

bool all_zero(const char* bytes, size_t size) {
  return bytes[0] == 0 && std::memcmp(bytes, bytes + 1, size - 1) == 0;
}

}  // namespace

SharedAllocation::SharedAllocation(void* kernel_address, size_t size) : kernel_address_(kernel_address), size_(size) {
  const bool made = platform::create_shared(kDataOffset + size, memory_);
  if (made) {
    header_ = static_cast<SharedHeader*>(platform::map_shared(memory_, 0, platform::page_size()));
  }
  if (header_ == nullptr) {
    platform::close_shared(memory_);
    throw Error(orErrorMemoryAllocation, join("the system refused a shared object of ", size,
                                              " bytes; raise the limit of open files or end other programs"));
  }
  Description description{};
  description.magic = kMagic;
  description.process = platform::process_id();
  description.token = make_token();
  description.size = size;
  std::copy(std::begin(memory_.name), std::end(memory_.name), description.name);
  description.checksum = checksum(description);
  std::memcpy(handle_.reserved, &description, sizeof(description));
  header_->token = description.token;
  header_->alive = 1;
  try {
    move_bytes();
  } catch (...) {
    withdraw();
    throw;
  }
}

SharedAllocation::~SharedAllocation() {
  withdraw();
  platform::unmap_shared_at(kernel_address_, size_);
}

void SharedAllocation::withdraw() noexcept {
  if (header_ != nullptr) {
    header_->alive = 0;
    platform::unmap_shared(header_, platform::page_size());
    header_ = nullptr;
  }
  platform::close_shared(memory_);
}

void SharedAllocation::move_bytes() {
  auto* target = static_cast<char*>(platform::map_shared(memory_, kDataOffset, size_));
  OPENREG_DRIVER_CHECK(target != nullptr, orErrorMemoryAllocation, "the system refused to map ", size_,
                       " bytes of shared memory; end other programs");
  auto* source = static_cast<char*>(kernel_address_);
  const size_t page = platform::page_size();
  for (size_t offset = 0; offset < size_; offset += page) {
    if (!all_zero(source + offset, page)) {  // pages that were never used stay without memory
      std::memcpy(target + offset, source + offset, page);
    }
  }
  const bool mapped = platform::map_shared_at(memory_, kDataOffset, source, size_);
  const bool restored = mapped || platform::commit(source, size_);
  if (!mapped && restored) {
    std::memcpy(source, target, size_);
  }
  platform::unmap_shared(target, size_);
  OPENREG_DRIVER_CHECK(mapped, orErrorMemoryAllocation, "the system refused to map ", size_,
                       " bytes of shared memory in place of an allocation; end other programs");
}

void* ImportWindow::open(const orIpcMemHandle_t& handle) {
  const Description description = read_handle(handle);
  const OpenedObject object(description);
  std::lock_guard<std::mutex> lock(mutex_);
  const size_t offset = first_fit(description.size);
  void* address = space_.device_base(device_) + offset;
  const auto entry = used_.emplace(offset, description.size).first;
  if (!platform::map_shared_at(object.memory, kDataOffset, space_.kernel_view(address), description.size)) {
    used_.erase(entry);
    platform::make_inaccessible(space_.kernel_view(address), description.size);
    throw Error(orErrorMemoryAllocation,
                join("the system refused to map ", description.size, " bytes of another process; end other programs"));
  }
  return address;
}

void ImportWindow::close(void* address) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto entry = find(address);
  void* view = space_.kernel_view(address);
  platform::unmap_shared_at(view, entry->second);
  platform::make_inaccessible(view, entry->second);
  used_.erase(entry);
}

void ImportWindow::check_closable(const void* address) const {
  std::lock_guard<std::mutex> lock(mutex_);
  find(address);
}

bool ImportWindow::contains(const void* address, size_t size) const {
  const auto [base, range_size] = range_of(address);
  return base != nullptr &&
         size <= range_size - static_cast<size_t>(static_cast<const char*>(address) - static_cast<char*>(base));
}

std::pair<void*, size_t> ImportWindow::range_of(const void* address) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const size_t offset = offset_of(address);
  auto entry = used_.upper_bound(offset);
  if (entry == used_.begin()) {
    return {nullptr, 0};
  }
  --entry;
  const bool inside = offset - entry->first < entry->second;
  return inside ? std::make_pair(static_cast<void*>(space_.device_base(device_) + entry->first), entry->second)
                : std::make_pair(static_cast<void*>(nullptr), size_t{0});
}

std::map<size_t, size_t>::const_iterator ImportWindow::find(const void* address) const {
  const auto entry = used_.find(offset_of(address));
  OPENREG_DRIVER_CHECK(entry != used_.end(), orErrorInvalidDevicePointer, "address ", address, " of device ", device_,
                       " was not returned by orIpcOpenMemHandle(), or was closed before; close each import once, by "
                       "its start");
  return entry;
}

// With a gap after each import so that a kernel that leaves one faults.
size_t ImportWindow::first_fit(size_t size) const {
  size_t offset = space_.import_begin();
  for (const auto& [used_offset, used_size] : used_) {
    if (used_offset - offset >= size + kDataOffset) {
      break;
    }
    offset = used_offset + used_size + kDataOffset;
  }
  const size_t available = space_.import_end() - std::min(offset, space_.import_end());
  OPENREG_DRIVER_CHECK(available >= size + kDataOffset, orErrorMemoryAllocation, "device ", device_,
                       " has no addresses for ", size,
                       " bytes of another process: what it imports may have the size of its capacity; close "
                       "imports or raise OPENREG_DEVICE_MEMORY");
  return offset;
}

size_t ImportWindow::offset_of(const void* address) const {
  return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(space_.device_base(device_));
}

}  // namespace openreg::driver
