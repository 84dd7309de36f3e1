// SPDX-License-Identifier: BSD-3-Clause
// Implements at::PrivateUse1HooksInterface, by which PyTorch calls the backend for everything except operators, streams
// and device memory.
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "openreg.h"
#include "openreg/runtime/allocator.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/generator.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/storage.h"

namespace openreg::runtime {

namespace {

struct DeviceHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  // Every backward pass calls this, to find the devices whose current streams it must save.
  bool hasPrimaryContext(c10::DeviceIndex index) const override {
    return is_initialized() && index >= 0 && index < device_count();
  }
  void init() const override { start_driver(); }

  c10::DeviceIndex deviceCount() const override { return device_count(); }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_device(index); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override { return exchange_device(index); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return maybe_exchange_device(index); }

  bool isPinnedPtr(const void* address) const override { return is_pinned(address); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &host_allocator(); }
  c10::Device getDeviceFromPtr(void* address) const override {
    orPointerAttributes attributes{};
    OPENREG_CHECK(orPointerGetAttributes(&attributes, address));
    TORCH_CHECK(attributes.type == orMemoryTypeDevice, "getDeviceFromPtr: the address ", address,
                " is not memory of an openreg device; pass the device explicitly");
    return {kDeviceType, static_cast<c10::DeviceIndex>(attributes.device)};
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return make_generator(index); }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t new_size) const override {
    resize_storage(*storage.unsafeGetStorageImpl(), new_size);
  }
};

[[maybe_unused]] const bool hooks_are_registered = [] {
  at::RegisterPrivateUse1HooksInterface(new DeviceHooks());
  return true;
}();

}  // namespace

}  // namespace openreg::runtime
