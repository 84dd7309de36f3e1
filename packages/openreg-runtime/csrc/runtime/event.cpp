// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/event.h"

#include <utility>

#include "openreg/runtime/gil.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/stream.h"

namespace openreg::runtime {

Event::Event(Event&& other) noexcept : timed_(other.timed_), event_(std::exchange(other.event_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(timed_, other.timed_);
  std::swap(event_, other.event_);
  return *this;
}

Event::~Event() {
  if (event_ != nullptr) {
    OPENREG_WARN(orEventDestroy(event_));
  }
}

void Event::record(c10::Stream stream) {
  if (event_ == nullptr) {
    OPENREG_CHECK(orEventCreateWithFlags(&event_, timed_ ? orEventEnableTiming : orEventDisableTiming));
  }
  OPENREG_CHECK(orEventRecord(event_, native_handle(stream)));
}

void Event::block(c10::Stream stream) const {
  if (event_ != nullptr) {
    OPENREG_CHECK(orStreamWaitEvent(native_handle(stream), event_, 0));
  }
}

bool Event::query() const {
  if (event_ == nullptr) {
    return true;
  }
  const orError_t status = orEventQuery(event_);
  if (status == orErrorNotReady) {
    return false;
  }
  OPENREG_CHECK(status);
  return true;
}

void Event::record_for_release(c10::Stream stream) noexcept {
  try {
    record(stream);
  } catch (const c10::Error&) {
    // The user hears of it from the next call on that stream.
  }
}

bool Event::query_for_release() const noexcept {
  try {
    return query();
  } catch (const c10::Error&) {
    return false;
  }
}

void Event::synchronize() const {
  if (event_ == nullptr) {
    return;
  }
  orError_t status = orSuccess;
  {
    const GilRelease release;
    status = orEventSynchronize(event_);
  }
  OPENREG_CHECK(status);
}

}  // namespace openreg::runtime
