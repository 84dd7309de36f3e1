// SPDX-License-Identifier: BSD-3-Clause
// Device memory: PyTorch's allocator over the driver's functions, counted per device.
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "device.h"
#include "driver.h"
#include "queue.h"

namespace pocket {

namespace {

struct Allocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t nbytes) override {
    check_not_forked();
    const c10::Device device(kType, current_device());
    if (nbytes == 0) {
      return {nullptr, device};
    }
    void* data = pocketMalloc(device.index(), nbytes);
    if (data == nullptr) {
      synchronize_all();  // kernels that run may still use memory that was freed
      data = pocketMalloc(device.index(), nbytes);
    }
    if (data == nullptr) {
      const auto [free, total] = getMemoryInfo(device.index());
      TORCH_CHECK_WITH(OutOfMemoryError, false, device, " is out of memory: tried to allocate ", nbytes, " bytes, ",
                       total - free, " of ", total, " are in use; free tensors or make smaller ones");
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    stats_[device.index()].allocated_bytes[0].increase(nbytes);
    blocks_[data] = {nbytes, device.index()};
    return {data, data, raw_deleter(), device};  // the context is the address: raw_allocate() requires it
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return [](void* data) {
      if (!is_forked()) {
        release_later({data, [](void* unused) { static_cast<Allocator&>(pocket::allocator()).release(unused); }});
      }
    };
  }

  void copy_data(void* destination, const void* source, size_t nbytes) const override {
    synchronize_all();
    pocketMemcpy(destination, source, nbytes);
  }

  // The functions behind torch.accelerator.
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t /*pool*/) override {}                               // nothing is cached
  void recordStream(const c10::DataPtr& /*data*/, c10::Stream /*stream*/) override {}  // release waits for all streams
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return stats(index);
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    stats(index).allocated_bytes[0].reset_accumulated();
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    stats(index).allocated_bytes[0].reset_peak();
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    check_device(index);
    std::pair<size_t, size_t> info;
    pocketMemGetInfo(index, &info.first, &info.second);
    return info;
  }

 private:
  struct Block {
    size_t nbytes;
    c10::DeviceIndex device;
  };

  c10::CachingDeviceAllocator::DeviceStats& stats(c10::DeviceIndex index) {
    check_device(index);
    return stats_[index];
  }

  void release(void* data) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = blocks_.find(data);
    const Block block = found->second;
    stats_[block.device].allocated_bytes[0].decrease(block.nbytes);
    blocks_.erase(found);
    pocketFree(block.device, data);
  }

  std::mutex mutex_;
  std::unordered_map<void*, Block> blocks_;
  std::vector<c10::CachingDeviceAllocator::DeviceStats> stats_{static_cast<size_t>(device_count())};
};

[[maybe_unused]] const bool registered = [] {
  c10::SetAllocator(kType, &allocator());
  return true;
}();

}  // namespace

c10::DeviceAllocator& allocator() {
  static auto* const instance = new Allocator();  // never deleted: tensors may be freed while the process ends
  return *instance;
}

void resize_storage(c10::StorageImpl& storage, size_t nbytes) {
  TORCH_CHECK(storage.resizable(), "the storage on ", storage.device(), " is not resizable");
  const c10::DeviceGuard guard(storage.device());  // restores the caller's device, also if memory is short
  c10::DataPtr data = allocator().allocate(nbytes);
  allocator().copy_data(data.get(), storage.data(), std::min(nbytes, storage.nbytes()));
  storage.set_data_ptr_noswap(std::move(data));
  storage.set_nbytes(nbytes);
}

}  // namespace pocket
