// SPDX-License-Identifier: BSD-3-Clause
#include "share/shared_memory.h"

#include <c10/core/StorageImpl.h>

#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "cache/import_cache.h"
#include "openreg/runtime/allocator.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/gil.h"
#include "openreg/runtime/status.h"

namespace openreg::runtime {

namespace {

char* open_segment(int device, const orIpcMemHandle_t& handle) {
  const CurrentDeviceGuard current(static_cast<c10::DeviceIndex>(device));
  void* address = nullptr;
  OPENREG_CHECK(orIpcOpenMemHandle(&address, handle, 0));
  return static_cast<char*>(address);
}

// Unmaps a segment. Blocks until all tasks of the device are complete. Does nothing in a forked child.
void close_segment(char* address) {
  OPENREG_WARN(orIpcCloseMemHandle(address));
}

// The context of the DataPtr of a received storage: its mapped segment and its reference count.
struct Received {
  c10::DeviceIndex device;
  std::shared_ptr<Import> segment;  // null if the count has no storage
  std::shared_ptr<Import> page;
  size_t slot;
};

// The receiver's side: the storages that this process received, and the counts that it has yet to release. Thread-safe.
class Receiver {
 public:
  c10::Storage open(c10::DeviceIndex index, const SharedRange& range, size_t size, const IpcRefCount& count) {
    auto received = open_ref_count(index, count);
    try {
      received->segment = imports_.open(index, range.segment);
    } catch (...) {
      release_ipc_ref_count(std::move(received));  // because no storage will release it
      throw;
    }
    void* address = received->segment->address() + range.offset;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      live_.insert(received.get());
    }
    c10::DataPtr data(address, received.release(), &Receiver::release, c10::Device(kDeviceType, index));
    return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), size, std::move(data),
                                                 &device_allocator(), /*resizable=*/false);
  }

  std::unique_ptr<Received> open_ref_count(c10::DeviceIndex index, const IpcRefCount& count) {
    auto received = std::make_unique<Received>();
    received->device = index;
    received->page = imports_.open(index, count.page);
    received->slot = count.slot;
    return received;
  }

  // Releases a count after all tasks of the device are complete, because the sender may reuse the memory at once. If
  // that fails, because the device has failed or is capturing, the next call releases the count, too.
  void release_ipc_ref_count(std::unique_ptr<Received> received) {
    std::vector<std::unique_ptr<Received>> due;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      due.swap(due_);
    }
    due.push_back(std::move(received));
    for (auto& entry : due) {
      if (!set_released(*entry)) {
        const std::lock_guard<std::mutex> lock(mutex_);
        due_.push_back(std::move(entry));
      }
    }
  }

  // Releases the counts of all received storages. The caller must not use the storages any more.
  void release_all_ipc_ref_counts() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Received* received : live_) {
      set_released(*received);
    }
    for (const auto& received : due_) {
      set_released(*received);
    }
    live_.clear();
    due_.clear();
  }

  static Receiver& instance() {
    static auto* const receiver = new Receiver();  // outlives every storage
    return *receiver;
  }

  static bool is_received(const c10::DataPtr& data) { return data.get_deleter() == &Receiver::release; }

 private:
  // A deleter must not throw, and must not lock a mutex that a forked child may have inherited locked.
  static void release(void* context) {
    if (orDriverIsUsable() == 0) {
      return;
    }
    try {
      const GilRelease release;
      instance().forget(std::unique_ptr<Received>(static_cast<Received*>(context)));
    } catch (const std::exception& error) {
      TORCH_WARN("releasing openreg memory of another process failed: ", error.what());
    }
  }

  void forget(std::unique_ptr<Received> received) {
    bool owes = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      owes = live_.erase(received.get()) > 0;
    }
    if (owes) {
      release_ipc_ref_count(std::move(received));
    }
  }

  static bool set_released(const Received& received) {
    const CurrentDeviceGuard current(received.device);
    const bool set =
        orDeviceSynchronize() == orSuccess && orMemset(received.page->address() + received.slot, 1, 1) == orSuccess;
    if (!set) {
      orGetLastError();
    }
    return set;
  }

  ImportCache imports_{&open_segment, &close_segment};
  std::mutex mutex_;
  std::unordered_set<Received*> live_;          // received storages that are not freed
  std::vector<std::unique_ptr<Received>> due_;  // counts whose release has failed so far
};

}  // namespace

SharedRange share_storage(const c10::Storage& storage) {
  TORCH_CHECK(storage.device_type() == kDeviceType,
              "share_storage: expected a storage on an openreg device, but got one on ", storage.device());
  ensure_initialized();  // throws in a forked child
  TORCH_CHECK(!Receiver::is_received(storage.data_ptr()),
              "share_storage: a tensor that this process received from another one cannot be sent on, because only its "
              "owner knows when its memory (on ",
              storage.device(), ") is free again; send a copy: tensor.clone()");
  c10::StorageImpl& impl = *storage.unsafeGetStorageImpl();
  char* address = static_cast<char*>(impl.mutable_data());
  SharedRange range{};
  void* base = nullptr;
  size_t segment_size = 0;
  OPENREG_CHECK(orMemGetAddressRange(&base, &segment_size, address));
  orError_t status = orSuccess;
  {
    const GilRelease release;
    status = orIpcGetMemHandle(&range.segment, base);
  }
  OPENREG_CHECK(status);
  range.offset = static_cast<size_t>(address - static_cast<char*>(base));
  impl.set_resizable(false);
  return range;
}

c10::Storage open_storage(c10::DeviceIndex index, const SharedRange& range, size_t size, const IpcRefCount& count) {
  ensure_initialized();
  const GilRelease release;
  return Receiver::instance().open(index, range, size, count);
}

void release_ipc_ref_count(c10::DeviceIndex index, const IpcRefCount& count) {
  ensure_initialized();
  const GilRelease release;
  Receiver& receiver = Receiver::instance();
  receiver.release_ipc_ref_count(receiver.open_ref_count(index, count));
}

void release_all_ipc_ref_counts() {
  if (is_initialized()) {
    const GilRelease release;
    Receiver::instance().release_all_ipc_ref_counts();
  }
}

}  // namespace openreg::runtime
