// SPDX-License-Identifier: BSD-3-Clause
// How DistributedDataParallel times its steps on the device (source: c10d::Timer): by events of the current stream, so
// that no thread waits. What it shows stands in DistributedDataParallel._get_ddp_logging_data().
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
    mark.emplace(device_.type(), c10::EventFlag::BACKEND_DEFAULT);  // with time
    mark->record(runtime::current_stream(device_.index()));
  }

  // Nothing where one of the events is not reached yet, or the work between them was that of another step.
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
