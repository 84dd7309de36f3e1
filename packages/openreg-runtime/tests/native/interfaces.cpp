// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's C++ interfaces that no Python function reaches: what the backend registered answers through them.
#include <ATen/Context.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <openreg.h>
#include <openreg/runtime/device.h>
#include <openreg/runtime/status.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

namespace {

constexpr c10::DeviceType kType = openreg::runtime::kDeviceType;
constexpr c10::DeviceIndex kSecond = 1;

void check(bool condition, const char* what) {
  if (!condition) {
    std::fprintf(stderr, "failed: %s\n", what);
    std::exit(1);
  }
}

template <class Function>
void check_throws(Function function, const char* what) {
  try {
    function();
  } catch (const c10::Error&) {
    return;
  }
  check(false, what);
}

int current() {
  int device = -1;
  OPENREG_CHECK(orGetDevice(&device));
  return device;
}

void guards_switch_and_restore() {
  {
    const c10::DeviceGuard guard(c10::Device(kType, kSecond));
    check(current() == kSecond, "a device guard makes its device current");
    check(guard.original_device().index() == 0, "and knows the one before");
  }
  check(current() == 0, "and gives it back");
  const c10::impl::VirtualGuardImpl impl(kType);
  impl.uncheckedSetDevice(c10::Device(kType, kSecond));
  check(impl.getDevice().index() == kSecond, "a destructor can set the device");
  impl.uncheckedSetDevice(c10::Device(kType, 0));
  check_throws([&] { impl.setDevice(c10::Device(c10::kCUDA, 0)); }, "another type of device is refused");
  check(current() == 0, "and nothing is changed");
}

void streams_come_from_a_pool() {
  const c10::impl::VirtualGuardImpl impl(kType);
  const c10::Device device(kType, kSecond);
  const c10::Stream standard = impl.getDefaultStream(device);
  check(standard.device_index() == kSecond && impl.getStream(device) == standard, "the default stream is current");
  std::set<c10::StreamId> ids;
  for (int i = 0; i < 200; ++i) {
    ids.insert(impl.getStreamFromGlobalPool(device, false).id());
  }
  check(ids.size() == 32, "a pool has 32 streams");
  const c10::Stream urgent = impl.getStreamFromGlobalPool(device, true);
  check(ids.count(urgent.id()) == 0, "urgent streams have a pool of their own");
  int priority = 0;
  OPENREG_CHECK(orStreamGetPriority(static_cast<orStream_t>(impl.getStreamNativeHandle(urgent)), &priority));
  check(priority == -3, "and the highest priority");
  {
    const c10::StreamGuard guard(urgent);
    check(impl.getStream(device) == urgent && current() == kSecond, "a stream guard makes its stream current");
  }
  check(impl.getStream(device) == standard && current() == 0, "and gives the one before back");
}

void hooks_know_addresses_and_generators() {
  const at::PrivateUse1HooksInterface& hooks = at::detail::getPrivateUse1Hooks();
  c10::Allocator* allocator = c10::GetAllocator(kType);
  const c10::DeviceGuard guard(c10::Device(kType, kSecond));
  const c10::DataPtr data = allocator->allocate(64);
  check(hooks.getDeviceFromPtr(data.get()) == c10::Device(kType, kSecond), "an address tells its device");
  const at::Tensor tensor = at::from_blob(data.get(), {16}, at::TensorOptions().device(kType).dtype(at::kFloat));
  check(tensor.device().index() == kSecond, "from_blob() asks for it");
  int number = 0;
  check_throws([&] { hooks.getDeviceFromPtr(&number); }, "memory of the host is refused");
  check(hooks.getDefaultGenerator(kSecond) == at::globalContext().defaultGenerator(c10::Device(kType, kSecond)),
        "there is one default generator for each device");
  check(hooks.hasPrimaryContext(kSecond), "a device in use has a context");
  check(!hooks.hasPrimaryContext(-1) && !hooks.hasPrimaryContext(hooks.deviceCount()), "no other index has one");
  check(!(hooks.getNewGenerator(kSecond) == hooks.getDefaultGenerator(kSecond)), "a new generator is another one");
}

void allocators_copy_and_release_raw_memory() {
  c10::Allocator* allocator = c10::GetAllocator(kType);
  check(allocator->raw_deleter() != nullptr, "there is a raw deleter");
  void* raw = allocator->raw_allocate(256);
  char bytes[256];
  std::memset(bytes, 7, sizeof(bytes));
  OPENREG_CHECK(orMemcpy(raw, bytes, sizeof(bytes), orMemcpyHostToDevice));
  const c10::DataPtr copy = allocator->clone(raw, sizeof(bytes));
  check(copy.get() != raw, "a clone has memory of its own");
  std::memset(bytes, 0, sizeof(bytes));
  OPENREG_CHECK(orMemcpy(bytes, copy.get(), sizeof(bytes), orMemcpyDeviceToHost));
  check(bytes[0] == 7 && bytes[255] == 7, "with the bytes of the original");
  allocator->raw_deallocate(raw);
  void* again = allocator->raw_allocate(256);
  check(again == raw, "raw memory goes back to the cache");
  allocator->raw_deallocate(again);
}

}  // namespace

int main() {
  at::globalContext().lazyInitDevice(kType);
  guards_switch_and_restore();
  streams_come_from_a_pool();
  hooks_know_addresses_and_generators();
  allocators_copy_and_release_raw_memory();
  std::puts("all interfaces answer");
  return 0;
}
