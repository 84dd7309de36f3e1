// SPDX-License-Identifier: BSD-3-Clause
// The board: made on first use, unusable after fork(), stopped at exit.
//
// REAL HW: opening the device file, creating a context, and what the kernel driver does when the process ends.
#include "driver.h"

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "execute.h"
#include "platform.h"

namespace openreg::driver {

namespace {

enum class Gone : int { kNo, kForked, kExiting };

std::atomic<Gone>& gone() {
  static std::atomic<Gone> state{Gone::kNo};
  return state;
}

// The board and the lock under which it is made. A thread that forks takes the lock too: a child finds either no board
// or a whole one, never a lock whose owner does not exist in it. Lives for ever, because calls may come until the very
// end.
struct Board {
  std::mutex making;
  std::atomic<Driver*> driver{nullptr};
};

Board& board() {
  static Board& only = *new Board;
  return only;
}

// While the library is loaded, so that board() is made and fork() prepared before there is a second thread.
[[maybe_unused]] const bool fork_prepared = [] {
  board();
  platform::around_fork([] { board().making.lock(); }, [] { board().making.unlock(); },
                        [] {
                          if (board().driver.load() != nullptr) {
                            gone() = Gone::kForked;
                          }
                          board().making.unlock();
                        });
  return true;
}();

void stop_at_exit() {
  // In a forked child the engines do not exist; on an engine's own thread there is nobody to wait for but ourselves.
  if (gone().load() != Gone::kNo || on_engine()) {
    return;
  }
  Driver& driver = Driver::get();
  gone() = Gone::kExiting;
  if (platform::threads_run_during_exit()) {
    driver.scheduler.stop();
  }
  for (auto& device : driver.devices) {
    device->memory.withdraw_shared();
  }
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
      scheduler(devices, faults, settings) {
  faults.arm(settings.faults);
}

Driver* Driver::create() {
  auto* driver = new Driver(settings());
  std::atexit(stop_at_exit);
  return driver;
}

Driver& Driver::get() {
  switch (gone().load(std::memory_order_relaxed)) {
    case Gone::kNo:
      break;
    case Gone::kForked:
      throw Error(
          orErrorForkedChild,
          "the parent process used the device before fork(), and a child cannot use it; start processes with the "
          "'spawn' or 'forkserver' method, or fork before first use");
    case Gone::kExiting:
      throw Error(orErrorDeinitialized, "the process is exiting and the device has stopped");
  }
  if (Driver* const made = board().driver.load(std::memory_order_acquire)) {
    return *made;
  }
  const std::lock_guard<std::mutex> lock(board().making);
  if (board().driver.load(std::memory_order_relaxed) == nullptr) {
    board().driver.store(create(), std::memory_order_release);
  }
  return *board().driver.load(std::memory_order_relaxed);
}

bool Driver::is_gone() {
  return gone().load(std::memory_order_relaxed) != Gone::kNo;
}

void check_device_index(int index) {
  const int count = settings().device_count;
  OPENREG_DRIVER_CHECK(index >= 0 && index < count, orErrorInvalidDevice, "The device index is out of range: ", index,
                       " was asked for, but this process has ", count, " devices, 0 to ", count - 1,
                       "; OPENREG_DEVICE_COUNT sets their number");
}

Device& Driver::device(int index) {
  check_device_index(index);
  return *devices[static_cast<size_t>(index)];
}

Device& Driver::current() {
  return *devices[static_cast<size_t>(current_device())];
}

int& current_device() {
  thread_local int index = 0;
  return index;
}

}  // namespace openreg::driver
