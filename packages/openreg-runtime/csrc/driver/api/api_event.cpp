// SPDX-License-Identifier: BSD-3-Clause
// C functions on events.
#include "api/driver.h"

using namespace openreg::driver;

namespace {

// Returns the device on which the event was recorded, or the current device if the event never was.
Device& device_of(Driver& driver, const Event& event) {
  return event.stream != nullptr ? *event.device : driver.current();
}

void check_not_skipped(const Event& event) {
  if (event.skipped) {
    event.device->throw_skipped();
  }
}

void check_timed(const Event& event, const char* which) {
  OPENREG_DRIVER_CHECK(event.timed, orErrorInvalidValue, "the ", which,
                       " event was created without orEventEnableTiming; create both with it");
  OPENREG_DRIVER_CHECK(event.stream != nullptr, orErrorInvalidValue, "the ", which,
                       " event was never recorded; call orEventRecord() on both first");
  check_not_skipped(event);
}

}  // namespace

orError_t orEventCreate(orEvent_t* event) {
  return orEventCreateWithFlags(event, orEventDisableTiming);
}

orError_t orEventCreateWithFlags(orEvent_t* event, unsigned int flags) {
  return guarded(__func__, [&] {
    check_pointer(event, "event");
    OPENREG_DRIVER_CHECK(flags == orEventDisableTiming || flags == orEventEnableTiming, orErrorInvalidValue, "flags ",
                         flags, " are unknown; pass orEventDisableTiming or orEventEnableTiming");
    Driver& driver = Driver::get();
    const Lock lock = driver.scheduler.lock();
    *event = handle_of(driver.scheduler.objects(lock).create_event(flags == orEventEnableTiming));
    return orSuccess;
  });
}

orError_t orEventDestroy(orEvent_t event) {
  return guarded_release(__func__, [&] {
    Driver& driver = Driver::get();
    const Lock lock = driver.scheduler.lock();
    driver.scheduler.objects(lock).destroy_event(driver.scheduler.event(event, lock));
    return orSuccess;
  });
}

orError_t orEventRecord(orEvent_t event, orStream_t stream) {
  return guarded(__func__, [&] {
    Driver& driver = Driver::get();
    Lock lock = driver.scheduler.lock();
    Stream& target = driver.scheduler.stream(stream, lock);
    Event& mark = driver.scheduler.event(event, lock);
    if (mark.timed) {
      driver.scheduler.wait_for_capacity(target, lock);  // so that submit() does not release the mutex first
      driver.scheduler.event(event, lock);               // throws if another thread has destroyed the event
    } else {                                             // recording enqueues nothing
      target.device->check_healthy();
      CaptureManager::check_valid(target);
    }
    if (target.capture != nullptr) {
      CaptureManager::record_event(mark, target);
      return orSuccess;
    }
    const Event before = mark;
    const uint64_t record = ++mark.record;
    mark.skipped = false;
    mark.captured = nullptr;
    mark.stream = &target;
    mark.device = target.device;
    mark.ticket = target.submitted;
    driver.scheduler.tracer(lock).sync(orSyncEventRecord, *target.device, &target, mark.ticket + (mark.timed ? 1 : 0),
                                       event);
    if (mark.timed) {
      Task task;
      task.kind = Task::Kind::kTimestamp;
      task.timestamp = {&mark, record};
      ++mark.ticket;  // what submit() returns; set before, because submit() may release the mutex
      try {
        driver.scheduler.submit(target, task, lock);
      } catch (...) {
        if (mark.record == record) {  // otherwise another thread has recorded or destroyed the event meanwhile
          mark = before;              // no task would complete the ticket
        }
        throw;
      }
    }
    return orSuccess;
  });
}

orError_t orEventQuery(orEvent_t event) {
  return guarded(__func__, [&] {
    Driver& driver = Driver::get();
    Lock lock = driver.scheduler.lock();
    const Event& mark = driver.scheduler.event(event, lock);
    if (driver.scheduler.run_for_query(mark.stream, mark.ticket, lock)) {
      driver.scheduler.event(event, lock);  // throws if another thread has destroyed the event
    }
    driver.scheduler.captures(lock).check_not_captured(mark);
    if (mark.stream != nullptr) {
      mark.device->check_healthy();
    }
    check_not_skipped(mark);
    if (!driver.scheduler.is_over(mark.stream, mark.ticket, lock)) {
      return orErrorNotReady;
    }
    driver.scheduler.tracer(lock).sync(orSyncEventQuery, device_of(driver, mark), mark.stream, mark.ticket, event);
    return orSuccess;
  });
}

orError_t orEventSynchronize(orEvent_t event) {
  return guarded(__func__, [&] {
    Driver& driver = Driver::get();
    Lock lock = driver.scheduler.lock();
    const Event& mark = driver.scheduler.event(event, lock);
    driver.scheduler.captures(lock).check_not_captured(mark);
    if (mark.stream != nullptr) {
      const Event marked = mark;  // another thread may destroy or record the event meanwhile
      driver.scheduler.wait(*marked.stream, *marked.device, marked.ticket, lock, event);
      check_not_skipped(marked);
    } else {
      driver.scheduler.tracer(lock).sync(orSyncEvent, device_of(driver, mark), nullptr, 0, event);
    }
    return orSuccess;
  });
}

orError_t orEventElapsedTime(float* milliseconds, orEvent_t start, orEvent_t end) {
  return guarded(__func__, [&] {
    check_pointer(milliseconds, "milliseconds");
    Driver& driver = Driver::get();
    const Lock lock = driver.scheduler.lock();
    const Event& first = driver.scheduler.event(start, lock);
    const Event& last = driver.scheduler.event(end, lock);
    driver.scheduler.captures(lock).check_not_captured(first);
    driver.scheduler.captures(lock).check_not_captured(last);
    check_timed(first, "start");
    check_timed(last, "end");
    OPENREG_DRIVER_CHECK(first.device == last.device, orErrorInvalidValue, "the start event was recorded on device ",
                         first.device->index, ", the end event on device ", last.device->index,
                         "; record both on streams of one device");
    if (!driver.scheduler.is_over(first.stream, first.ticket, lock) ||
        !driver.scheduler.is_over(last.stream, last.ticket, lock)) {
      return orErrorNotReady;
    }
    const auto distance = static_cast<double>(static_cast<int64_t>(last.nanoseconds - first.nanoseconds));
    *milliseconds = static_cast<float>(distance / 1e6);
    return orSuccess;
  });
}
