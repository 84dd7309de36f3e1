// SPDX-License-Identifier: BSD-3-Clause
// Implements c10::impl::DeviceGuardImplInterface, by which PyTorch switches devices and streams and uses events.
#include <c10/core/DeviceCapability.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "base/gpu_trace.h"
#include "openreg.h"
#include "openreg/runtime/allocator.h"
#include "openreg/runtime/capture.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/event.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/stream.h"
#include "openreg/runtime/sync_debug.h"

namespace openreg::runtime {

namespace {

// Returns the event in a void* of this interface. PyTorch stores the pointer, and record() sets it to the driver's
// handle.
orEvent_t to_event(void* event) {
  return static_cast<orEvent_t>(event);
}

// The dtypes of the device's kernels: those of CPU kernels, without dtypes of bits, and without int1 to int7 and uint1
// to uint7.
constexpr c10::ScalarType kSupportedDtypes[] = {
    c10::kByte,           c10::kChar,        c10::kShort,           c10::kInt,
    c10::kLong,           c10::kUInt16,      c10::kUInt32,          c10::kUInt64,
    c10::kBool,           c10::kHalf,        c10::kBFloat16,        c10::kFloat,
    c10::kDouble,         c10::kComplexHalf, c10::kComplexFloat,    c10::kComplexDouble,
    c10::kFloat8_e4m3fn,  c10::kFloat8_e5m2, c10::kFloat8_e4m3fnuz, c10::kFloat8_e5m2fnuz,
    c10::kFloat8_e8m0fnu, c10::kQInt8,       c10::kQUInt8,          c10::kQInt32,
    c10::kQUInt4x2,       c10::kQUInt2x4,
};

c10::DeviceCapability supported_dtypes() {
  c10::DeviceCapability capability;
  capability.capability_data.capability_bits = 0;
  for (const c10::ScalarType dtype : kSupportedDtypes) {
    capability.capability_data.capability_bits |= uint64_t{1} << static_cast<int>(dtype);
  }
  return capability;
}

struct DeviceGuardImpl final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kDeviceType; }

  // Devices. The current device belongs to the calling thread, so that no function needs a lock or the GIL. Autograd
  // starts one thread per device.
  c10::Device exchangeDevice(c10::Device device) const override {
    TORCH_CHECK(device.type() == kDeviceType, "exchangeDevice: expected an openreg device, but got ", device);
    return {kDeviceType, maybe_exchange_device(device.index())};
  }
  c10::Device getDevice() const override { return {kDeviceType, current_device()}; }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.type() == kDeviceType, "setDevice: expected an openreg device, but got ", device);
    set_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override { OPENREG_WARN(orSetDevice(device.index())); }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }
  c10::DeviceCapability getDeviceCapability(c10::Device device) const override {
    check_device_index(device.has_index() ? device.index() : current_device());
    return supported_dtypes();
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override { synchronize_device(index); }

  // Streams.
  c10::Stream getStream(c10::Device device) const override { return current_stream(device.index()); }
  c10::Stream getDefaultStream(c10::Device device) const override { return default_stream(device.index()); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    return stream_from_pool(device.index(), high_priority);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return new_stream(device.index(), priority);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return exchange_stream(stream); }
  void* getStreamNativeHandle(const c10::Stream stream) const override { return native_handle(stream); }
  bool queryStream(const c10::Stream& stream) const override { return query_stream(stream); }
  void synchronizeStream(const c10::Stream& stream) const override {
    warn_or_error_on_sync("Stream.synchronize()", stream.device());
    synchronize_stream(stream);
  }
  bool isStreamCapturing(const c10::Stream& stream) const override { return is_capturing(stream); }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    device_allocator().recordStream(data, stream);
  }

  // Events. PyTorch passes BACKEND_DEFAULT if the user enables timing.
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex index,
              const c10::EventFlag flag) const override {
    TORCH_CHECK(index == -1 || index == stream.device_index(),
                "Event.record(): the event belongs to openreg:", static_cast<int>(index),
                " and cannot be recorded on a stream of openreg:", static_cast<int>(stream.device_index()),
                "; make an event for each device");
    orEvent_t handle = to_event(*event);
    const bool is_new = handle == nullptr;
    record_event(handle, stream, flag == c10::EventFlag::BACKEND_DEFAULT);
    *event = handle;
    trace_gpu([&](const auto& python) {
      if (is_new) {
        python.trace_gpu_event_creation(kDeviceType, trace_id(handle));
      }
      python.trace_gpu_event_record(kDeviceType, trace_id(handle), trace_id(native_handle(stream)));
    });
  }
  void block(void* event, const c10::Stream& stream) const override {
    block_stream(to_event(event), stream);
    if (event != nullptr) {
      trace_gpu([&](const auto& python) {
        python.trace_gpu_event_wait(kDeviceType, trace_id(event), trace_id(native_handle(stream)));
      });
    }
  }
  bool queryEvent(void* event) const override { return query_event(to_event(event)); }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) {
      trace_gpu([&](const auto& python) { python.trace_gpu_event_synchronization(kDeviceType, trace_id(event)); });
    }
    synchronize_event(to_event(event));
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex /*index*/) const override {
    float milliseconds = 0;
    OPENREG_CHECK(orEventElapsedTime(&milliseconds, to_event(start), to_event(end)));
    return milliseconds;
  }
  void destroyEvent(void* event, const c10::DeviceIndex /*index*/) const noexcept override {
    if (event != nullptr) {
      trace_gpu([&](const auto& python) { python.trace_gpu_event_deletion(kDeviceType, trace_id(event)); });
      OPENREG_WARN(orEventDestroy(to_event(event)));
    }
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, DeviceGuardImpl)

}  // namespace

}  // namespace openreg::runtime
