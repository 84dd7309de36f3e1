// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/shared_memory.h"

#include <c10/core/StorageImpl.h>

#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "import_cache.h"
#include "openreg/runtime/allocator.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/gil.h"
#include "openreg/runtime/status.h"

namespace openreg::runtime {

namespace {

// A receipt as its receiver sees it.
struct OpenReceipt {
  c10::DeviceIndex device;
  std::shared_ptr<Import> page;
  size_t slot;
};

// What a received storage owns.
struct Received {
  std::shared_ptr<Import> segment;
  OpenReceipt receipt;
};

class Receiver {
 public:
  c10::Storage open(c10::DeviceIndex index, const SharedRange& range, size_t size, const Receipt& receipt) {
    auto received = std::make_unique<Received>();
    received->receipt = open_receipt(index, receipt);
    try {
      received->segment = imports_.open(index, range.segment);
    } catch (...) {
      acknowledge(received->receipt);  // nobody will use what was sent
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

  OpenReceipt open_receipt(c10::DeviceIndex index, const Receipt& receipt) {
    return {index, imports_.open(index, receipt.page), receipt.slot};
  }

  void acknowledge(OpenReceipt receipt) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      due_.push_back(std::move(receipt));
    }
    set_due_receipts();
  }

  void acknowledge_all() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (Received* received : live_) {
        due_.push_back(std::move(received->receipt));
      }
      live_.clear();
    }
    set_due_receipts();
  }

  static Receiver& instance() {
    static auto* const receiver = new Receiver();  // outlives every storage
    return *receiver;
  }

  static bool is_received(const c10::DataPtr& data) { return data.get_deleter() == &Receiver::release; }

 private:
  // A deleter must not throw, and must not touch a mutex that a forked child may have inherited locked.
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
      acknowledge(std::move(received->receipt));
    }
  }

  // The sender reuses the memory at once, so all work here has to be done. What cannot be said now, because the device
  // has failed, is said later.
  void set_due_receipts() {
    std::vector<OpenReceipt> due;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      due.swap(due_);
    }
    for (OpenReceipt& receipt : due) {
      const CurrentDevice current(receipt.device);
      const bool set =
          orDeviceSynchronize() == orSuccess && orMemset(receipt.page->address() + receipt.slot, 1, 1) == orSuccess;
      if (!set) {
        orGetLastError();
        const std::lock_guard<std::mutex> lock(mutex_);
        due_.push_back(std::move(receipt));
      }
    }
  }

  ImportCache imports_;
  std::mutex mutex_;
  std::unordered_set<Received*> live_;
  std::vector<OpenReceipt> due_;
};

}  // namespace

SharedRange share_storage(const c10::Storage& storage) {
  TORCH_CHECK(storage.device_type() == kDeviceType, "share_storage: the storage is on ", storage.device(),
              ", not on an openreg device");
  ensure_initialized();  // in a forked child, this says so
  TORCH_CHECK(
      !Receiver::is_received(storage.data_ptr()),
      "a tensor that this process received from another one cannot be sent on, because only its owner knows when "
      "its memory (on ",
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

c10::Storage open_storage(c10::DeviceIndex index, const SharedRange& range, size_t size, const Receipt& receipt) {
  ensure_initialized();
  const GilRelease release;
  return Receiver::instance().open(index, range, size, receipt);
}

void acknowledge(c10::DeviceIndex index, const Receipt& receipt) {
  ensure_initialized();
  const GilRelease release;
  Receiver& receiver = Receiver::instance();
  receiver.acknowledge(receiver.open_receipt(index, receipt));
}

void acknowledge_all() {
  if (is_initialized()) {
    const GilRelease release;
    Receiver::instance().acknowledge_all();
  }
}

}  // namespace openreg::runtime
