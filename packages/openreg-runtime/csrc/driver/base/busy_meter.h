// SPDX-License-Identifier: BSD-3-Clause
// The meter behind the utilization of a device.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace openreg::driver {

// A sum of the busy time of the past second, from intervals that may be added late and may overlap. Keeps one sum per
// slice of time, so that an interval costs a few additions. In nanoseconds of the steady clock. Not thread-safe.
class BusyMeter {
 public:
  // Adds the busy interval [begin, end).
  void add(uint64_t begin, uint64_t end) {
    begin = std::max(begin, end > kWindow ? end - kWindow : 0);  // busy() never reads what is older
    while (begin < end) {
      const uint64_t slice = begin / kSlice;
      const uint64_t until = std::min(end, (slice + 1) * kSlice);
      Slot& slot = slots_[slice % kSlots];
      if (slot.slice != slice) {
        slot = {slice, 0};
      }
      slot.busy += until - begin;
      begin = until;
    }
  }

  // Returns the busy time in (time - kWindow, time], with the precision of a slice and at most kWindow.
  uint64_t busy(uint64_t time) const {
    const uint64_t newest = time / kSlice;
    uint64_t sum = 0;
    for (const Slot& slot : slots_) {
      if (slot.slice <= newest && newest - slot.slice < kSlots - 1) {
        sum += slot.busy;
      }
    }
    return std::min(sum, kWindow);
  }

  static constexpr uint64_t kWindow = 1'000'000'000;

 private:
  static constexpr size_t kSlots = 33;  // the slices of the window, and one more for the current slice
  static constexpr uint64_t kSlice = kWindow / (kSlots - 1);
  struct Slot {
    uint64_t slice = 0;
    uint64_t busy = 0;
  };
  std::array<Slot, kSlots> slots_{};
};

}  // namespace openreg::driver
