// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: drivers have such switches for their own tests, for example the fault-injection framework of the Linux
// kernel.
#include "base/faults.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace openreg::driver {

namespace {

constexpr std::string_view kOwnKinds[kFirstRegisteredFault] = {"alloc", "copy", "launch", "lose"};
constexpr int kMostRegistered = 32;

// Returns the names of registered kinds, in the order of their numbers. The first unused element and all after it are
// null. The names are never freed, because the libraries that register them are never unloaded.
std::atomic<const std::string*>* registered() {
  static std::atomic<const std::string*> names[kMostRegistered] = {};
  return names;
}

// Returns the number of the kind `name`, or -1 if it does not exist.
int find_kind(std::string_view name) {
  for (int kind = 0; kind < kFirstRegisteredFault; ++kind) {
    if (kOwnKinds[kind] == name) {
      return kind;
    }
  }
  for (int i = 0; i < kMostRegistered; ++i) {
    const std::string* const known = registered()[i].load(std::memory_order_acquire);
    if (known == nullptr) {
      break;
    }
    if (*known == name) {
      return kFirstRegisteredFault + i;
    }
  }
  return -1;
}

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// Parses one item, such as "copy:3@1". Returns false if it is malformed.
bool parse_fault(std::string_view item, int device_count, Fault& fault) {
  const size_t colon = item.find(':');
  if (colon == std::string_view::npos) {
    return false;
  }
  const int kind = find_kind(item.substr(0, colon));
  if (kind < 0) {
    return false;
  }
  const std::string_view rest = item.substr(colon + 1);
  const size_t at = rest.find('@');
  fault = {kind, 0, -1};
  if (at != std::string_view::npos &&
      (!parse_number(rest.substr(at + 1), fault.device) || fault.device < 0 || fault.device >= device_count)) {
    return false;
  }
  return parse_number(rest.substr(0, at), fault.countdown) && fault.countdown > 0;
}

}  // namespace

int register_fault_kind(const std::string& name) {
  const bool fits = !name.empty() && std::all_of(name.begin(), name.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || letter == '_';
  });
  OPENREG_DRIVER_CHECK(fits, orErrorInvalidValue, "'", name,
                       "' cannot be the name of a kind of faults; give lower-case letters and underscores");
  const int known = find_kind(name);
  if (known >= 0) {
    return known;
  }
  auto fresh = std::make_unique<const std::string>(name);
  for (int i = 0; i < kMostRegistered; ++i) {
    const std::string* other = nullptr;
    if (registered()[i].compare_exchange_strong(other, fresh.get(), std::memory_order_acq_rel)) {
      static_cast<void>(fresh.release());
      return kFirstRegisteredFault + i;
    }
    if (*other == name) {
      return kFirstRegisteredFault + i;
    }
  }
  throw Error(orErrorInvalidValue, join("no room for the kind of faults '", name, "': ", kMostRegistered,
                                        " are registered already; register fewer kinds"));
}

int fault_kind_count() {
  int count = kFirstRegisteredFault;
  while (count < kFirstRegisteredFault + kMostRegistered &&
         registered()[count - kFirstRegisteredFault].load(std::memory_order_acquire) != nullptr) {
    ++count;
  }
  return count;
}

std::string fault_form() {
  std::string kinds;
  for (const std::string_view kind : kOwnKinds) {
    kinds += std::string(kinds.empty() ? "" : ", ") + std::string(kind);
  }
  for (int i = 0; i < fault_kind_count() - kFirstRegisteredFault; ++i) {
    kinds += ", " + *registered()[i].load(std::memory_order_acquire);
  }
  return "a comma-separated list of KIND:N or KIND:N@DEVICE with KIND one of " + kinds +
         " (a package that has further kinds is imported before the device is used), N from 1 on and an existing "
         "DEVICE, such as alloc:100,copy:3@1";
}

bool parse_faults(const std::string& text, int device_count, std::vector<Fault>& faults) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    Fault fault{};
    if (!parse_fault(rest.substr(0, comma), device_count, fault)) {
      return false;
    }
    faults.push_back(fault);
    if (comma == std::string_view::npos) {
      return true;
    }
    rest.remove_prefix(comma + 1);
  }
  return text.empty();
}

void Faults::arm(std::vector<Fault> faults) {
  const std::lock_guard<std::mutex> lock(mutex_);
  faults_ = std::move(faults);
  armed_ = !faults_.empty();
}

bool Faults::count(int kind, int device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  bool failing = false;
  for (Fault& fault : faults_) {
    if (fault.kind == kind && (fault.device == -1 || fault.device == device) && fault.countdown > 0) {
      failing |= --fault.countdown == 0;
    }
  }
  return failing;
}

}  // namespace openreg::driver
