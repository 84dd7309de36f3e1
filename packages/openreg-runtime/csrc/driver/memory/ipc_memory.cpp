// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the kernel driver maps the memory of the device for several processes, so no bytes move. Here an export
// moves private memory into a shared object of the operating system, at unchanged addresses.
#include "memory/ipc_memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "memory/ipc_handle.h"

namespace openreg::driver {

using platform::SharedMemory;

// The first bytes of a shared object, which several processes read concurrently. The bytes of the allocation start at
// kDataOffset.
struct SharedHeader {
  std::array<uint64_t, 2> token;
  uint64_t process;             // number of the exporter; on Linux, a thread's number would open the object, too
  std::atomic<uint32_t> alive;  // 0 after the allocation was freed
};

namespace {

constexpr size_t kDataOffset = platform::kSharedGranule;

// A guard that opens the object of a handle, and closes it in its destructor. Mappings stay valid afterwards.
class OpenedObject {
 public:
  // Throws Error(orErrorInvalidValue) if the object does not exist, is inaccessible, or is not the exported one.
  explicit OpenedObject(const IpcHandleLayout& layout) {
    if (!platform::open_shared(layout.process, layout.object, memory_) || !is_described_by(layout)) {
      platform::close_shared(memory_);  // the destructor does not run after the constructor throws
      throw Error(orErrorInvalidValue,
                  join("the memory of process ", layout.process,
                       " that argument `handle` describes is gone: the process has ended or freed it, or this process "
                       "may not see it; keep the allocation until all receivers have opened it, and run them as the "
                       "same user"));
    }
  }
  OpenedObject(const OpenedObject&) = delete;
  OpenedObject& operator=(const OpenedObject&) = delete;
  ~OpenedObject() { platform::close_shared(memory_); }

  const SharedMemory& memory() const { return memory_; }

 private:
  bool is_described_by(const IpcHandleLayout& layout) const {
    if (memory_.size != kDataOffset + layout.size) {
      return false;
    }
    auto* header = static_cast<SharedHeader*>(platform::map_shared(memory_, 0, platform::page_size()));
    if (header == nullptr) {
      return false;
    }
    const bool alive = header->token == layout.token && header->process == layout.process && header->alive == 1;
    platform::unmap_shared(header, platform::page_size());
    return alive;
  }

  SharedMemory memory_;
};

bool all_zero(const char* bytes, size_t size) {
  return bytes[0] == 0 && std::memcmp(bytes, bytes + 1, size - 1) == 0;
}

}  // namespace

SharedAllocation::SharedAllocation(void* kernel_address, size_t size) : kernel_address_(kernel_address), size_(size) {
  IpcHandleLayout layout{};
  layout.token = make_ipc_token();  // first, while nothing needs cleanup, because it throws without random numbers
  const bool made = platform::create_shared(kDataOffset + size, memory_);
  if (made) {
    header_ = static_cast<SharedHeader*>(platform::map_shared(memory_, 0, platform::page_size()));
  }
  if (header_ == nullptr) {
    platform::close_shared(memory_);
    throw Error(orErrorMemoryAllocation, join("the system refused a shared object of ", size,
                                              " bytes; raise the limit of open files or end other programs"));
  }
  layout.process = platform::process_id();
  layout.object = memory_.number;
  layout.size = size;
  handle_ = encode_ipc_handle(layout);
  header_->token = layout.token;
  header_->process = layout.process;
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
    if (!all_zero(source + offset, page)) {  // pages that were never written stay without memory
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
  const IpcHandleLayout layout = decode_ipc_handle(handle);
  const OpenedObject object(layout);
  const auto size = static_cast<size_t>(layout.size);
  const auto entry = reserve(size);
  void* address = space_.device_base(device_) + entry->first;
  void* view = space_.kernel_view(address);
  const bool mapped = platform::map_shared_at(object.memory(), kDataOffset, view, size);
  if (!mapped) {
    platform::make_inaccessible(view, size);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!mapped) {
    used_.erase(entry);
    throw Error(orErrorMemoryAllocation,
                join("the system refused to map ", size, " bytes of another process; end other programs"));
  }
  entry->second.is_mapped = true;
  return address;
}

void ImportWindow::close(void* address) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto entry = used_.find(find(address)->first);
  entry->second.is_mapped = false;
  lock.unlock();
  void* view = space_.kernel_view(address);
  platform::unmap_shared_at(view, entry->second.size);
  platform::make_inaccessible(view, entry->second.size);
  lock.lock();
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
  const bool inside = entry->second.is_mapped && offset - entry->first < entry->second.size;
  return inside ? std::make_pair(static_cast<void*>(space_.device_base(device_) + entry->first), entry->second.size)
                : std::make_pair(static_cast<void*>(nullptr), size_t{0});
}

ImportWindow::ImportedRanges::const_iterator ImportWindow::find(const void* address) const {
  const auto entry = used_.find(offset_of(address));
  OPENREG_DRIVER_CHECK(entry != used_.end() && entry->second.is_mapped, orErrorInvalidDevicePointer, "address ",
                       address, " of device ", device_,
                       " was not returned by orIpcOpenMemHandle(), or was closed before; close each import once, by "
                       "its start");
  return entry;
}

ImportWindow::ImportedRanges::iterator ImportWindow::reserve(size_t size) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return used_.emplace(first_fit(size), ImportedRange{size, false}).first;
}

// Returns the first offset with `size` free bytes and a gap after them, in which a kernel that leaves the import
// faults. Throws Error(orErrorMemoryAllocation) if there is none. The caller holds `mutex_`.
size_t ImportWindow::first_fit(size_t size) const {
  size_t offset = space_.import_begin();
  for (const auto& [used_offset, used] : used_) {
    if (used_offset - offset >= size + kDataOffset) {
      break;
    }
    offset = used_offset + used.size + kDataOffset;
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
