// SPDX-License-Identifier: BSD-3-Clause
#include "progress/flight_recorder.h"

namespace openreg::distributed {

int64_t now_nanoseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void FlightRecorder::add(const std::shared_ptr<FlightRecord>& flight) {
  if (capacity_ == 0) {
    return;
  }
  std::shared_ptr<const FlightRecord> dropped;  // Released after the mutex.
  const std::lock_guard<std::mutex> lock(mutex_);
  flight->id = added_++;
  records_.push_back(flight);
  if (records_.size() > capacity_) {
    dropped = std::move(records_.front());
    records_.pop_front();
  }
}

std::vector<std::shared_ptr<const FlightRecord>> FlightRecorder::records() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {records_.begin(), records_.end()};
}

}  // namespace openreg::distributed
