// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/stream.h"

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "base/current_stream.h"
#include "base/gpu_trace.h"
#include "base/observer_callback.h"
#include "base/tool_hooks.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/host_wait.h"
#include "openreg/runtime/status.h"

namespace openreg::runtime {

namespace {

constexpr size_t kStreamsPerPool = 32;
constexpr c10::StreamId kDefaultStreamId = 0;

c10::Stream make_stream(c10::DeviceIndex index, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDeviceType, index), id);
}

// Returns the id of the calling thread's current stream of a device. Initially 0, the id of the default stream.
c10::StreamId& stream_id_of_thread(c10::DeviceIndex index) {
  thread_local std::array<c10::StreamId, OPENREG_MAX_DEVICES> ids{};
  return ids[static_cast<size_t>(index)];
}

std::vector<orStream_t> find_default_streams() {
  ensure_initialized();
  std::vector<orStream_t> handles(static_cast<size_t>(device_count()));
  for (size_t i = 0; i < handles.size(); ++i) {
    OPENREG_CHECK(orDeviceGetDefaultStream(&handles[i], static_cast<int>(i)));
  }
  return handles;
}

c10::DeviceIndex resolve(c10::DeviceIndex index) {
  if (index == -1) {
    return current_device();
  }
  check_device_index(index);
  return index;
}

// The pooled streams of one device and priority class. Each is created at the call that first returns it.
struct StreamPool {
  std::mutex mutex;
  std::vector<c10::StreamId> ids;
  size_t next = 0;
};

StreamPool& pool_of(c10::DeviceIndex index, bool high_priority) {
  static auto* const pools = new std::array<std::array<StreamPool, 2>, OPENREG_MAX_DEVICES>();
  return (*pools)[static_cast<size_t>(index)][high_priority ? 1 : 0];
}

c10::StreamId create_stream(c10::DeviceIndex index, int priority) {
  const CurrentDeviceGuard current(index);
  orStream_t handle = nullptr;
  OPENREG_CHECK(orStreamCreateWithPriority(&handle, 0, priority));
  return static_cast<c10::StreamId>(reinterpret_cast<intptr_t>(handle));
}

void trace_creation(c10::StreamId stream) {
  trace_gpu([&](const auto& python) { python.trace_gpu_stream_creation(kDeviceType, static_cast<uintptr_t>(stream)); });
}

}  // namespace

c10::StreamId current_stream_id(c10::DeviceIndex index) {
  return stream_id_of_thread(index);
}

c10::Stream current_stream(c10::DeviceIndex index) {
  index = resolve(index);
  return make_stream(index, stream_id_of_thread(index));
}

c10::Stream exchange_stream(c10::Stream stream) {
  const c10::DeviceIndex index = resolve(stream.device_index());
  const c10::Stream previous = make_stream(index, stream_id_of_thread(index));
  stream_id_of_thread(index) = stream.id();
  return previous;
}

c10::Stream default_stream(c10::DeviceIndex index) {
  return make_stream(resolve(index), kDefaultStreamId);
}

c10::Stream stream_from_pool(c10::DeviceIndex index, bool high_priority) {
  ensure_initialized();
  index = resolve(index);
  StreamPool& pool = pool_of(index, high_priority);
  c10::StreamId created = kDefaultStreamId;
  {
    const std::lock_guard<std::mutex> lock(pool.mutex);
    if (pool.ids.size() >= kStreamsPerPool) {
      return make_stream(index, pool.ids[pool.next++ % kStreamsPerPool]);
    }
    int least = 0;
    int greatest = 0;
    OPENREG_CHECK(orDeviceGetStreamPriorityRange(&least, &greatest));
    created = create_stream(index, high_priority ? greatest : least);
    pool.ids.push_back(created);
  }
  trace_creation(created);
  return make_stream(index, created);
}

c10::Stream new_stream(c10::DeviceIndex index, int priority) {
  ensure_initialized();
  index = resolve(index);
  const c10::StreamId created = create_stream(index, priority);
  trace_creation(created);
  return make_stream(index, created);
}

orStream_t native_handle(c10::Stream stream) {
  refuse_inside_callback("work for a stream (a launch, a copy, an event)");
  if (stream.id() != kDefaultStreamId) {
    return reinterpret_cast<orStream_t>(static_cast<intptr_t>(stream.id()));
  }
  static const auto* const defaults = new std::vector<orStream_t>(find_default_streams());
  return defaults->at(static_cast<size_t>(stream.device_index()));
}

c10::Stream stream_from_handle(orStream_t handle) {
  ensure_initialized();
  int device = 0;
  OPENREG_CHECK(orStreamGetDevice(handle, &device));
  const c10::Stream default_of_device = make_stream(static_cast<c10::DeviceIndex>(device), kDefaultStreamId);
  if (handle == native_handle(default_of_device)) {
    return default_of_device;
  }
  return make_stream(default_of_device.device_index(), static_cast<c10::StreamId>(reinterpret_cast<intptr_t>(handle)));
}

bool query_stream(c10::Stream stream) {
  const orError_t status = orStreamQuery(native_handle(stream));
  if (status == orErrorNotReady) {
    return false;
  }
  OPENREG_CHECK(status);
  return true;
}

void synchronize_stream(c10::Stream stream) {
  const orStream_t handle = native_handle(stream);
  trace_gpu([&](const auto& python) { python.trace_gpu_stream_synchronization(kDeviceType, trace_id(handle)); });
  orError_t status = orSuccess;
  {
    const CallReasonGuard reason(CallReason::kWait);
    const HostWait wait;
    status = orStreamSynchronize(handle);
  }
  OPENREG_CHECK(status);
}

}  // namespace openreg::runtime
