// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the driver opens the device file and creates a context. The kernel driver cleans up when the process ends.
#include "api/driver.h"

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "engine/execute.h"
#include "platform/platform.h"

namespace openreg::driver {

namespace {

// The bits of state(). If any is set, Driver::get() checks whether the call is allowed.
constexpr int kForked = 1;
constexpr int kExiting = 2;
constexpr int kObserved = 4;  // callbacks may be called, in which calls are not allowed

std::atomic<int>& state() {
  static std::atomic<int> bits{0};
  return bits;
}

// The only driver, and the mutex of its creation. A thread that calls fork() also locks the mutex. A child therefore
// has no driver or a complete one, and never a mutex whose owner does not exist in the child. Never destroyed, because
// the API may be called until the process ends.
struct DriverSingleton {
  std::mutex making;
  std::atomic<Driver*> driver{nullptr};
};

DriverSingleton& driver_singleton() {
  static DriverSingleton& only = *new DriverSingleton;
  return only;
}

// Runs while the library is loaded, so that driver_singleton() exists and fork() is prepared before there is a second
// thread.
[[maybe_unused]] const bool fork_prepared = [] {
  driver_singleton();
  platform::around_fork([] { driver_singleton().making.lock(); }, [] { driver_singleton().making.unlock(); },
                        [] {
                          if (driver_singleton().driver.load() != nullptr) {
                            state() |= kForked;
                          } else {
                            read_settings_again();
                          }
                          driver_singleton().making.unlock();
                        });
  return true;
}();

void stop_at_exit() {
  // The engine threads do not exist in a forked child, and an engine thread cannot wait for itself. A callback that
  // ends the process holds the mutex for which they wait.
  if (Driver::is_unusable() || is_engine_thread() || is_in_callback()) {
    return;
  }
  Driver& driver = Driver::get();
  state() |= kExiting;
  if (platform::threads_run_during_exit()) {
    driver.scheduler.stop();
  }
  for (auto& device : driver.devices) {
    device->memory.withdraw_shared();
  }
}

void check_state(int bits) {
  OPENREG_DRIVER_CHECK((bits & kForked) == 0, orErrorForkedChild,
                       "the parent process used the device before fork(), and a child cannot use it; start processes "
                       "with the 'spawn' or 'forkserver' method, or fork before first use");
  OPENREG_DRIVER_CHECK((bits & kExiting) == 0, orErrorDeinitialized,
                       "the process is exiting and the device has stopped; finish its work before the process exits");
  check_not_in_callback();
}

std::vector<std::unique_ptr<Device>> make_devices(const Settings& settings, const AddressSpace& space) {
  std::vector<std::unique_ptr<Device>> devices;
  for (int index = 0; index < settings.device_count; ++index) {
    devices.push_back(std::make_unique<Device>(space, index, settings.device_memory));
  }
  return devices;
}

}  // namespace

Driver::Driver(const Settings& settings)
    : space(settings.device_count, settings.device_memory),
      devices(make_devices(settings, space)),
      scheduler(space, devices, faults, settings) {
  faults.arm(settings.faults);
}

Driver* Driver::create() {
  auto* driver = new Driver(settings());
  std::atexit(stop_at_exit);
  return driver;
}

Driver& Driver::get() {
  if (const int bits = state().load(std::memory_order_relaxed); bits != 0) [[unlikely]] {
    check_state(bits);
  }
  if (Driver* const made = driver_singleton().driver.load(std::memory_order_acquire)) {
    return *made;
  }
  const std::lock_guard<std::mutex> lock(driver_singleton().making);
  if (driver_singleton().driver.load(std::memory_order_relaxed) == nullptr) {
    driver_singleton().driver.store(create(), std::memory_order_release);
  }
  return *driver_singleton().driver.load(std::memory_order_relaxed);
}

bool Driver::is_unusable() {
  return (state().load(std::memory_order_relaxed) & (kForked | kExiting)) != 0;
}

bool Driver::is_observed() {
  return (state().load(std::memory_order_relaxed) & kObserved) != 0;
}

void Driver::set_observed(bool observed) {
  if (observed) {
    state() |= kObserved;
  } else {
    state() &= ~kObserved;
  }
}

bool Driver::operands_wanted() {
  const Driver* const made = driver_singleton().driver.load(std::memory_order_acquire);
  return made != nullptr && made->scheduler.operands_wanted() && !is_unusable();
}

namespace {

std::atomic<orEnqueueHook_t>& enqueue_hook() {
  static std::atomic<orEnqueueHook_t> hook{nullptr};
  return hook;
}

}  // namespace

void Driver::call_enqueue_hook() noexcept {
  if (const orEnqueueHook_t hook = enqueue_hook().load(std::memory_order_acquire)) {
    hook();
  }
}

void Driver::set_enqueue_hook(orEnqueueHook_t hook) noexcept {
  enqueue_hook().store(hook, std::memory_order_release);
}

void check_device_index(int index) {
  const int count = settings().device_count;
  OPENREG_DRIVER_CHECK(index >= 0 && index < count, orErrorInvalidDevice, "The device index is out of range: ", index,
                       " was requested, but this process has ", count, " devices, 0 to ", count - 1,
                       "; OPENREG_DEVICE_COUNT sets their number");
}

void check_flags(unsigned int flags) {
  OPENREG_DRIVER_CHECK(flags == 0, orErrorInvalidValue, "flags ", flags, " are unknown; pass 0");
}

void Driver::notify_memory(orMemoryAction action, int device_index, void* address) {
  const bool on_host = device_index < 0;
  const size_t size = on_host ? pinned.size_of(address) : device(device_index).memory.range_of(address).second;
  const Lock lock = scheduler.lock();
  scheduler.subscribers(lock).memory(
      {action, on_host ? orMemoryTypeHost : orMemoryTypeDevice, on_host ? -1 : device_index, address, size});
}

Device& Driver::device(int index) {
  check_device_index(index);
  return *devices[static_cast<size_t>(index)];
}

Device& Driver::current() {
  return *devices[static_cast<size_t>(current_device())];
}

}  // namespace openreg::driver
