// SPDX-License-Identifier: BSD-3-Clause
#include "flight_recorder.h"

namespace openreg::distributed {

int64_t now_nanoseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void FlightRecorder::add(const std::shared_ptr<Flight>& flight) {
  if (capacity_ == 0) {
    return;
  }
  std::shared_ptr<const Flight> dropped;  // outside of the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  flight->id = added_++;
  flights_.push_back(flight);
  if (flights_.size() > capacity_) {
    dropped = std::move(flights_.front());
    flights_.pop_front();
  }
}

std::vector<std::shared_ptr<const Flight>> FlightRecorder::flights() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {flights_.begin(), flights_.end()};
}

}  // namespace openreg::distributed
