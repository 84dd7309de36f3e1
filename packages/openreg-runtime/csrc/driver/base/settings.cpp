// SPDX-License-Identifier: BSD-3-Clause
// This file reads and checks the environment variables of the driver.
#include "base/settings.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/error.h"
#include "platform/platform.h"

namespace openreg::driver {

namespace {

constexpr size_t kSmallestCapacity = size_t{2} << 20;

[[noreturn]] void refuse(const char* variable, const std::string& value, const char* accepted) {
  throw Error(orErrorInvalidConfiguration,
              join("environment variable ", variable, "='", value, "' is not accepted; give ", accepted,
                   " or unset it, and start the process again"));
}

// Splits a value such as "512MiB" into number and unit. Returns false if it has no digit or the number overflows.
bool parse_number(const std::string& text, unsigned long long& number, std::string& unit) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  unit = end;
  return error == std::errc();
}

constexpr const char* kDeviceCount = "OPENREG_DEVICE_COUNT";

int read_device_count() {
  const char* text = std::getenv(kDeviceCount);
  if (text == nullptr) {
    return 2;
  }
  unsigned long long number = 0;
  std::string unit;
  if (!parse_number(text, number, unit) || !unit.empty() || number < 1 || number > OPENREG_MAX_DEVICES) {
    refuse(kDeviceCount, text, join("a whole number from 1 to ", OPENREG_MAX_DEVICES).c_str());
  }
  return static_cast<int>(number);
}

// Returns the bytes of a unit, or 0 if the unit is unknown.
size_t unit_factor(const std::string& unit) {
  if (unit == "KiB") {
    return size_t{1} << 10;
  }
  if (unit == "MiB") {
    return size_t{1} << 20;
  }
  if (unit == "GiB") {
    return size_t{1} << 30;
  }
  return unit.empty() || unit == "B" ? 1 : 0;
}

size_t round_to_pages(size_t size) {
  const size_t page = platform::page_size();
  return size / page * page;
}

size_t read_device_memory(int device_count) {
  constexpr const char* kName = "OPENREG_DEVICE_MEMORY";
  constexpr const char* kForm = "a size from 2MiB to 1024GiB such as 8GiB, 512MiB or a number of bytes";
  const char* text = std::getenv(kName);
  if (text == nullptr) {
    const size_t share = platform::usable_memory() / 2 / static_cast<size_t>(device_count);
    return round_to_pages(std::max(share, kSmallestCapacity));
  }
  unsigned long long number = 0;
  std::string unit;
  const bool parsed = parse_number(text, number, unit);
  const size_t factor = unit_factor(unit);
  constexpr size_t kLargest = size_t{1} << 40;
  if (!parsed || factor == 0 || number > kLargest / factor || number * factor < kSmallestCapacity) {
    refuse(kName, text, kForm);
  }
  return round_to_pages(static_cast<size_t>(number) * factor);
}

bool read_flag(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) {
    return false;
  }
  const std::string value(text);
  if (value != "0" && value != "1") {
    refuse(name, value, "0 or 1");
  }
  return value == "1";
}

std::optional<uint64_t> read_schedule_seed() {
  constexpr const char* kName = "OPENREG_SCHEDULE_SEED";
  const char* text = std::getenv(kName);
  if (text == nullptr) {
    return std::nullopt;
  }
  unsigned long long number = 0;
  std::string unit;
  if (!parse_number(text, number, unit) || !unit.empty()) {
    refuse(kName, text, "a whole number from 0 to 18446744073709551615");
  }
  return number;
}

uint64_t read_schedule_timeout() {
  constexpr const char* kName = "OPENREG_SCHEDULE_TIMEOUT";
  constexpr uint64_t kSecond = 1'000'000'000;
  const char* text = std::getenv(kName);
  if (text == nullptr) {
    return kSecond;
  }
  unsigned long long number = 0;
  std::string unit;
  if (!parse_number(text, number, unit) || !unit.empty() || number < 1 || number > 3600) {
    refuse(kName, text, "a whole number of seconds from 1 to 3600");
  }
  return number * kSecond;
}

std::vector<Fault> read_faults(int device_count) {
  constexpr const char* kName = "OPENREG_FAULTS";
  const char* text = std::getenv(kName);
  std::vector<Fault> faults;
  if (text != nullptr && (*text == 0 || !parse_faults(text, device_count, faults))) {
    refuse(kName, text, fault_form().c_str());
  }
  return faults;
}

// Returns the device count that the parent of this forked child has read, or 0 if it has read none.
std::atomic<int>& inherited_count() {
  static std::atomic<int> count{0};
  return count;
}

int read_the_same_device_count() {
  const int count = read_device_count();
  const int inherited = inherited_count().load();
  if (inherited != 0 && count != inherited) {
    const std::string form = join(inherited, ", inherited from the parent process,");
    refuse(kDeviceCount, std::to_string(count), form.c_str());
  }
  return count;
}

std::atomic<const Settings*>& published() {
  static std::atomic<const Settings*> settings{nullptr};
  return settings;
}

Settings read_settings() {
  Settings result{};
  result.device_count = read_the_same_device_count();
  result.device_memory = read_device_memory(result.device_count);
  result.launch_blocking = read_flag("OPENREG_LAUNCH_BLOCKING");
  result.schedule_seed = read_schedule_seed();
  result.schedule_timeout = read_schedule_timeout();
  result.faults = read_faults(result.device_count);
  result.poison = read_flag("OPENREG_POISON");
  return result;
}

}  // namespace

const Settings& settings() {
  // Takes no lock, because fork() could leave it locked forever in a child. Threads that call at the same time all read
  // the environment, and the first one to finish publishes its result.
  if (const Settings* known = published().load(std::memory_order_acquire)) {
    return *known;
  }
  auto fresh = std::make_unique<const Settings>(read_settings());
  const Settings* known = nullptr;
  if (published().compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) {
    return *fresh.release();
  }
  return *known;
}

void read_settings_again() {
  if (const Settings* known = published().exchange(nullptr)) {
    inherited_count() = known->device_count;
  }
}

}  // namespace openreg::driver
