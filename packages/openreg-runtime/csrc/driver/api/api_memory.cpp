// SPDX-License-Identifier: BSD-3-Clause
// C functions on memory.
#include <cstdlib>
#include <cstring>
#include <tuple>

#include "api/driver.h"

using namespace openreg::driver;

namespace {

// In bytes. A pageable source up to this size is copied into a buffer of the task, so that the call does not block.
constexpr size_t kStagingLimit = size_t{64} << 10;
// In bytes. A copy of this size takes about as long as locking the scheduler's mutex, so that it may hold the mutex.
constexpr size_t kTryCopyLimit = size_t{4} << 10;

enum class MemoryKind { kPageable, kPinned, kDevice };

// An address that was passed to a copy or fill: the kind of its memory, and the address that an engine dereferences.
struct ResolvedAddress {
  MemoryKind kind;
  void* address;
};

// Throws Error(orErrorInvalidDevicePointer) unless all bytes of a range of device memory lie in one allocation.
ResolvedAddress resolve(Driver& driver, const void* pointer, size_t size) {
  void* address = const_cast<void*>(pointer);
  const int owner = driver.space.owner(pointer);
  if (owner >= 0) {
    driver.devices[static_cast<size_t>(owner)]->memory.check_range(pointer, size);
    return {MemoryKind::kDevice, driver.space.kernel_view(address)};
  }
  return {driver.pinned.contains(pointer, size) ? MemoryKind::kPinned : MemoryKind::kPageable, address};
}

void check_direction(const ResolvedAddress& destination, const ResolvedAddress& source, orMemcpyKind kind) {
  const bool to_device = destination.kind == MemoryKind::kDevice;
  const bool from_device = source.kind == MemoryKind::kDevice;
  bool fits = false;
  switch (kind) {
    case orMemcpyHostToHost:
      fits = !to_device && !from_device;
      break;
    case orMemcpyHostToDevice:
      fits = to_device && !from_device;
      break;
    case orMemcpyDeviceToHost:
      fits = !to_device && from_device;
      break;
    case orMemcpyDeviceToDevice:
      fits = to_device && from_device;
      break;
    case orMemcpyDefault:
      fits = true;
      break;
  }
  OPENREG_DRIVER_CHECK(fits, orErrorInvalidMemcpyDirection, "copy kind ", static_cast<int>(kind),
                       " does not fit a copy from ", from_device ? "device" : "host", " to ",
                       to_device ? "device" : "host", " memory; pass the kind that fits, or orMemcpyDefault");
}

// Checks the stream and its device, for a copy or fill of 0 bytes.
void check_stream(Driver& driver, orStream_t handle) {
  const Lock lock = driver.scheduler.lock();
  driver.scheduler.stream(handle, lock).device->check_healthy();
}

void enqueue_copy(void* dst, const void* src, size_t count, orMemcpyKind kind, orStream_t handle, bool wait) {
  Driver& driver = Driver::get();
  if (count == 0) {
    check_stream(driver, handle);
    return;
  }
  check_pointer(dst, "dst");
  check_pointer(src, "src");
  const ResolvedAddress destination = resolve(driver, dst, count);
  const ResolvedAddress source = resolve(driver, src, count);
  check_direction(destination, source, kind);
  driver.before_enqueue();
  Task task;
  task.kind = Task::Kind::kCopy;
  task.copy = {destination.address, source.address, count, nullptr};
  const bool pageable = destination.kind == MemoryKind::kPageable || source.kind == MemoryKind::kPageable;
  const bool stage = !wait && !driver.scheduler.launch_blocking() && destination.kind != MemoryKind::kPageable &&
                     source.kind == MemoryKind::kPageable && count <= kStagingLimit;
  std::unique_ptr<void, decltype(&std::free)> staging(stage ? std::malloc(count) : nullptr, &std::free);
  if (staging != nullptr) {
    std::memcpy(staging.get(), src, count);
    task.copy.source = staging.get();
    task.copy.staging = staging.get();
  }
  Lock lock = driver.scheduler.lock();
  Stream& stream = driver.scheduler.stream(handle, lock);
  if (wait) {
    driver.scheduler.captures(lock).check_may_block(*stream.device);
  }
  if (pageable) {
    // Also rejects a source that could be staged, because a replay would copy what the source held during the capture.
    CaptureManager::check_not_capturing(stream);
  }
  if (wait || driver.scheduler.is_blocking(stream, lock) || (pageable && staging == nullptr)) {
    driver.scheduler.submit_and_wait(stream, task, lock);
  } else {
    driver.scheduler.submit(stream, task, lock);
    staging.release();  // the task owns it now
  }
}

orError_t try_copy_to_host(void* dst, const void* src, size_t count, orStream_t handle) {
  Driver& driver = Driver::get();
  if (count == 0) {
    check_stream(driver, handle);
    return orSuccess;
  }
  check_pointer(dst, "dst");
  check_pointer(src, "src");
  // It makes no difference here whether host memory is pinned.
  const auto destination_kind = driver.space.owner(dst) < 0 ? MemoryKind::kPageable : MemoryKind::kDevice;
  const ResolvedAddress source = resolve(driver, src, count);
  check_direction({destination_kind, dst}, source, orMemcpyDeviceToHost);
  const Lock lock = driver.scheduler.lock();
  Stream& stream = driver.scheduler.stream(handle, lock);
  const bool copied =
      count <= kTryCopyLimit && driver.scheduler.try_copy(stream, {dst, source.address, count, nullptr}, lock);
  return copied ? orSuccess : orErrorNotReady;
}

// Throws Error(orErrorInvalidDevicePointer) unless all bytes are memory of `device`. `name` is that of the argument.
void check_side(Driver& driver, const void* pointer, int device, size_t count, const char* name) {
  driver.device(device);  // checks the index
  check_pointer(pointer, name);
  const int owner = driver.space.owner(pointer);
  OPENREG_DRIVER_CHECK(owner == device, orErrorInvalidDevicePointer, "argument `", name, "` = ", pointer,
                       " is memory of ", owner < 0 ? "the host" : join("device ", owner), ", not of device ", device,
                       "; pass the device that orPointerGetAttributes() returns for it");
  driver.device(device).memory.check_range(pointer, count);
}

void enqueue_peer_copy(void* dst, int dst_device, const void* src, int src_device, size_t count, orStream_t handle,
                       bool wait) {
  Driver& driver = Driver::get();
  if (count > 0) {
    check_side(driver, dst, dst_device, count, "dst");
    check_side(driver, src, src_device, count, "src");
  } else {
    driver.device(dst_device);
    driver.device(src_device);
  }
  enqueue_copy(dst, src, count, orMemcpyDeviceToDevice, handle, wait);
}

void enqueue_fill(void* pointer, int value, size_t count, orStream_t handle, bool wait) {
  Driver& driver = Driver::get();
  if (count == 0) {
    check_stream(driver, handle);
    return;
  }
  OPENREG_DRIVER_CHECK(driver.space.owner(pointer) >= 0, orErrorInvalidDevicePointer, "address ", pointer,
                       " is not device memory; use memset() for host memory");
  driver.before_enqueue();
  Task task;
  task.kind = Task::Kind::kFill;
  task.fill = {resolve(driver, pointer, count).address, count, value};
  Lock lock = driver.scheduler.lock();
  Stream& stream = driver.scheduler.stream(handle, lock);
  if (wait) {
    driver.scheduler.captures(lock).check_may_block(*stream.device);
  }
  if (wait || driver.scheduler.is_blocking(stream, lock)) {
    driver.scheduler.submit_and_wait(stream, task, lock);
  } else {
    driver.scheduler.submit(stream, task, lock);
  }
}

}  // namespace

orError_t orMalloc(void** devPtr, size_t size) {
  return guarded(__func__, [&] {
    check_pointer(devPtr, "devPtr");
    Driver& driver = Driver::get();
    Device& device = driver.current();
    if (size == 0) {
      *devPtr = nullptr;
      return orSuccess;
    }
    OPENREG_DRIVER_CHECK(!driver.faults.should_fail(kAllocationFault, device.index), orErrorMemoryAllocation, "device ",
                         device.index, " is out of memory for ", size,
                         " bytes: an injected fault (OPENREG_FAULTS or orSetFaults())");
    *devPtr = device.memory.allocate(size);
    driver.report_memory(orMemoryAllocated, device.index, *devPtr);
    return orSuccess;
  });
}

orError_t orFree(void* devPtr) {
  return guarded_release(__func__, [&] {
    if (devPtr == nullptr) {
      return orSuccess;
    }
    Driver& driver = Driver::get();
    const int owner = driver.space.owner(devPtr);
    OPENREG_DRIVER_CHECK(owner >= 0, orErrorInvalidDevicePointer, "address ", devPtr,
                         " is not device memory; pass an address that orMalloc() returned");
    Device& device = driver.device(owner);
    device.memory.check_releasable(devPtr);
    {
      Lock lock = driver.scheduler.lock();
      driver.scheduler.drain(device, lock);
    }
    driver.report_memory(orMemoryReleased, owner, devPtr);
    device.memory.release(devPtr);
    return orSuccess;
  });
}

orError_t orMallocHost(void** hostPtr, size_t size) {
  return guarded(__func__, [&] {
    check_pointer(hostPtr, "hostPtr");
    Driver& driver = Driver::get();
    *hostPtr = size == 0 ? nullptr : driver.pinned.allocate(size);
    if (*hostPtr != nullptr) {
      driver.report_memory(orMemoryAllocated, -1, *hostPtr);
    }
    return orSuccess;
  });
}

orError_t orFreeHost(void* hostPtr) {
  return guarded_release(__func__, [&] {
    if (hostPtr == nullptr) {
      return orSuccess;
    }
    Driver& driver = Driver::get();
    driver.pinned.check_releasable(hostPtr);
    {
      Lock lock = driver.scheduler.lock();
      for (auto& device : driver.devices) {
        driver.scheduler.drain(*device, lock);
      }
    }
    driver.report_memory(orMemoryReleased, -1, hostPtr);
    driver.pinned.release(hostPtr);
    return orSuccess;
  });
}

orError_t orMemGetInfo(size_t* free, size_t* total) {
  return guarded(__func__, [&] {
    check_pointer(free, "free");
    check_pointer(total, "total");
    const DeviceMemory& memory = Driver::get().current().memory;
    *total = memory.capacity();
    *free = memory.capacity() - memory.allocated();
    return orSuccess;
  });
}

orError_t orPointerGetAttributes(orPointerAttributes* attributes, const void* ptr) {
  return guarded(__func__, [&] {
    check_pointer(attributes, "attributes");
    Driver& driver = Driver::get();
    const int owner = driver.space.owner(ptr);
    const bool on_device = owner >= 0 && driver.device(owner).memory.contains(ptr, 1);
    attributes->pointer = const_cast<void*>(ptr);
    attributes->device = on_device ? owner : -1;
    attributes->type = on_device                        ? orMemoryTypeDevice
                       : driver.pinned.contains(ptr, 1) ? orMemoryTypeHost
                                                        : orMemoryTypeUnmanaged;
    return orSuccess;
  });
}

orError_t orMemGetAddressRange(void** base, size_t* size, const void* devPtr) {
  return guarded(__func__, [&] {
    check_pointer(base, "base");
    check_pointer(size, "size");
    Driver& driver = Driver::get();
    const int owner = driver.space.owner(devPtr);
    OPENREG_DRIVER_CHECK(owner >= 0, orErrorInvalidDevicePointer, "address ", devPtr,
                         " is not device memory; pass an address inside of an allocation of orMalloc()");
    std::tie(*base, *size) = driver.device(owner).memory.range_of(devPtr);
    return orSuccess;
  });
}

orError_t orGetKernelViewOffset(ptrdiff_t* offset) {
  return guarded(__func__, [&] {
    check_pointer(offset, "offset");
    *offset = Driver::get().space.kernel_offset();
    return orSuccess;
  });
}

orError_t orMemcpy(void* dst, const void* src, size_t count, orMemcpyKind kind) {
  return guarded(__func__, [&] {
    enqueue_copy(dst, src, count, kind, nullptr, true);
    return orSuccess;
  });
}

orError_t orMemcpyAsync(void* dst, const void* src, size_t count, orMemcpyKind kind, orStream_t stream) {
  return guarded(__func__, [&] {
    enqueue_copy(dst, src, count, kind, stream, false);
    return orSuccess;
  });
}

orError_t orTryMemcpyToHost(void* dst, const void* src, size_t count, orStream_t stream) {
  return guarded(__func__, [&] { return try_copy_to_host(dst, src, count, stream); });
}

orError_t orMemset(void* devPtr, int value, size_t count) {
  return guarded(__func__, [&] {
    enqueue_fill(devPtr, value, count, nullptr, true);
    return orSuccess;
  });
}

orError_t orMemsetAsync(void* devPtr, int value, size_t count, orStream_t stream) {
  return guarded(__func__, [&] {
    enqueue_fill(devPtr, value, count, stream, false);
    return orSuccess;
  });
}

orError_t orMemcpyPeer(void* dst, int dstDevice, const void* src, int srcDevice, size_t count) {
  return guarded(__func__, [&] {
    enqueue_peer_copy(dst, dstDevice, src, srcDevice, count, nullptr, true);
    return orSuccess;
  });
}

orError_t orMemcpyPeerAsync(void* dst, int dstDevice, const void* src, int srcDevice, size_t count, orStream_t stream) {
  return guarded(__func__, [&] {
    enqueue_peer_copy(dst, dstDevice, src, srcDevice, count, stream, false);
    return orSuccess;
  });
}
