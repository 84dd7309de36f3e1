// SPDX-License-Identifier: BSD-3-Clause
#include "cache/memory_observers.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace openreg::runtime {

namespace {

bool& inside_a_callback() {
  thread_local bool inside = false;
  return inside;
}

}  // namespace

bool MemoryObserverList::is_notifying() {
  return inside_a_callback();
}

void MemoryObserverList::notify(const MemoryEvent& event) noexcept {
  const bool outer = std::exchange(inside_a_callback(), true);
  bool failed = false;
  for (Observer& observer : observers_) {
    if ((observer.kinds & memory_event_bit(event.kind)) == 0) {
      continue;
    }
    try {
      observer.callback(event);
      continue;
    } catch (const std::exception& error) {
      observer.failure = error.what();
    } catch (...) {
      observer.failure = "something that is no std::exception";
    }
    observer.kinds = 0;
    failed = true;
  }
  if (failed) {
    update_wanted();
  }
  inside_a_callback() = outer;
}

void MemoryObserverList::add(uint64_t id, uint32_t kinds, Callback callback) {
  observers_.push_back({id, kinds, std::move(callback), {}});
  ++count_;
  update_wanted();
}

std::optional<std::string> MemoryObserverList::remove(uint64_t id) {
  const auto found =
      std::find_if(observers_.begin(), observers_.end(), [&](const auto& item) { return item.id == id; });
  if (found == observers_.end()) {
    return std::nullopt;
  }
  std::string failure = std::move(found->failure);
  observers_.erase(found);
  --count_;
  update_wanted();
  return failure;
}

void MemoryObserverList::update_wanted() {
  wanted_ = 0;
  for (const Observer& observer : observers_) {
    wanted_ |= observer.kinds;
  }
}

}  // namespace openreg::runtime
