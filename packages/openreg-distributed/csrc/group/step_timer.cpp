// SPDX-License-Identifier: BSD-3-Clause
// Measures the steps of DistributedDataParallel with events on the current stream, so that no thread blocks (source:
// c10d::Timer). DistributedDataParallel._get_ddp_logging_data() returns the times.
#include <c10/core/Event.h>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include <array>
#include <cmath>
#include <optional>

#include "openreg/runtime/device.h"
#include "openreg/runtime/stream.h"

namespace openreg::distributed {

namespace {

class StepTimer final : public c10d::Timer {
 public:
  explicit StepTimer(c10::Device device) : device_(device) {}

  void record(Event event) override {
    Timer::record(event);
    auto& mark = marks_[static_cast<size_t>(event)];
    mark.emplace(device_.type(), c10::EventFlag::BACKEND_DEFAULT);  // With timing.
    mark->record(runtime::current_stream(device_.index()));
  }

  // Returns nothing if an event is not complete, or if the events belong to different steps.
  std::optional<int64_t> measureDifference(Event start, Event end) override {
    const auto& first = marks_[static_cast<size_t>(start)];
    const auto& last = marks_[static_cast<size_t>(end)];
    if (!first || !last || !first->query() || !last->query()) {
      return std::nullopt;
    }
    const double milliseconds = first->elapsedTime(*last);
    return milliseconds < 0 ? std::nullopt : std::optional(std::llround(milliseconds * 1e6));
  }

 private:
  const c10::Device device_;
  std::array<std::optional<c10::Event>, 5> marks_;
};

}  // namespace

}  // namespace openreg::distributed

namespace c10d {

C10_REGISTER_TYPED_CLASS(TimerRegistry, openreg::runtime::kDeviceType, openreg::distributed::StepTimer)

}  // namespace c10d
