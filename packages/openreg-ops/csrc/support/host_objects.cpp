// SPDX-License-Identifier: BSD-3-Clause
#include "support/host_objects.h"

#include <iterator>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace openreg::ops {

namespace {

using Held = std::shared_ptr<const HostObject>;

constexpr uint64_t kCallsPerSearch = 64;  // a model has hundreds of objects

struct HeldObjects {
  std::mutex mutex;
  std::unordered_map<const void*, Held> by_address;
  uint64_t next_number = 0;
  uint64_t calls = 0;
};

HeldObjects& held_objects() {
  static auto* const objects = new HeldObjects;  // outlives launches that run while the process exits
  return *objects;
}

c10::intrusive_ptr<torch::CustomClassHolder> holder_of(const c10::IValue& object) {
  return object.toObjectRef().getSlot(0).toCapsule();
}

// Returns true if only the table owns the object. The counts are safe to read, because other threads can only lower
// them. The caller holds the table's mutex.
bool is_left_alone(const Held& held) {
  constexpr uint32_t kOurs = 1;
  constexpr uint32_t kOursAndThis = 2;
  return held.use_count() == 1 && held->value.use_count() == kOurs &&
         holder_of(held->value).use_count() == kOursAndThis;
}

}  // namespace

Held hold_on_host(const c10::IValue& object) {
  const void* const address = holder_of(object).get();
  HeldObjects& objects = held_objects();
  std::vector<Held> released;  // released after the lock, because a destructor may need the GIL
  const std::lock_guard<std::mutex> lock(objects.mutex);
  Held held = objects.by_address[address];
  if (held == nullptr) {
    held = std::make_shared<const HostObject>(HostObject{object, objects.next_number++});
    objects.by_address[address] = held;
    objects.calls = 0;
  }
  if (objects.calls++ % kCallsPerSearch == 0) {
    for (auto each = objects.by_address.begin(); each != objects.by_address.end();) {
      const bool is_left = is_left_alone(each->second);
      if (is_left) {
        released.push_back(std::move(each->second));
      }
      each = is_left ? objects.by_address.erase(each) : std::next(each);
    }
  }
  return held;
}

}  // namespace openreg::ops
