// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/event.h"

#include <exception>
#include <utility>

#include "base/enqueue.h"
#include "base/tool_hooks.h"
#include "openreg/runtime/host_wait.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/stream.h"

namespace openreg::runtime {

bool query_event(orEvent_t event) {
  if (event == nullptr) {
    return true;
  }
  const orError_t status = orEventQuery(event);
  if (status == orErrorNotReady) {
    return false;
  }
  OPENREG_CHECK(status);
  return true;
}

void synchronize_event(orEvent_t event) {
  if (event == nullptr) {
    return;
  }
  orError_t status = orSuccess;
  {
    const HostWait wait;
    status = orEventSynchronize(event);
  }
  OPENREG_CHECK(status);
}

void block_stream(orEvent_t event, c10::Stream stream) {
  if (event == nullptr) {
    return;
  }
  const orStream_t handle = native_handle(stream);
  OPENREG_CHECK(enqueue_without_gil([&] { return orStreamWaitEvent(handle, event, 0); }));
}

void record_event(orEvent_t& event, c10::Stream stream, bool timed) {
  const orStream_t handle = native_handle(stream);
  const bool is_new = event == nullptr;
  orEvent_t recorded = event;
  if (is_new) {
    OPENREG_CHECK(orEventCreateWithFlags(&recorded, timed ? orEventEnableTiming : orEventDisableTiming));
  }
  // Without timing, the event needs no place in the queue, so the call does not block.
  const orError_t status =
      timed ? enqueue_without_gil([&] { return orEventRecord(recorded, handle); }) : orEventRecord(recorded, handle);
  if (status != orSuccess && is_new) {
    orEventDestroy(recorded);  // the caller has no handle of it
  } else {
    event = recorded;
  }
  OPENREG_CHECK(status);
}

Event::Event(Event&& other) noexcept
    : timed_(other.timed_), device_(other.device_), event_(std::exchange(other.event_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(timed_, other.timed_);
  std::swap(device_, other.device_);
  std::swap(event_, other.event_);
  return *this;
}

Event::~Event() {
  if (event_ != nullptr) {
    OPENREG_WARN(orEventDestroy(event_));
  }
}

void Event::record(c10::Stream stream) {
  device_ = stream.device_index();
  record_event(event_, stream, timed_);
}

void Event::block(c10::Stream stream) const {
  block_stream(event_, stream);
}

bool Event::query() const {
  return query_event(event_);
}

void Event::record_for_release(c10::Stream stream) noexcept {
  const CallReasonGuard reason(CallReason::kAllocator);
  try {
    record(stream);
  } catch (const std::exception&) {
    // The next call on that stream reports the error. A null event with a device is one that was not recorded.
    const Event dropped(std::move(*this));
  }
}

bool Event::query_for_release() const noexcept {
  const CallReasonGuard reason(CallReason::kAllocator);
  if (event_ == nullptr) {
    return device_ < 0 || orDeviceGetError(device_) == orSuccess;
  }
  const orError_t status = orEventQuery(event_);
  if (status == orSuccess || status == orErrorNotReady) {
    return status == orSuccess;
  }
  // After a reset of the device, its skipped tasks are over. Before that, another of its tasks may still run.
  const bool is_over = status == orErrorLaunchFailure && orDeviceGetError(device_) == orSuccess;
  orGetLastError();
  return is_over;
}

void Event::synchronize() const {
  synchronize_event(event_);
}

}  // namespace openreg::runtime
