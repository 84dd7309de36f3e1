// SPDX-License-Identifier: BSD-3-Clause
// C functions on streams.
#include "api/driver.h"

using namespace openreg::driver;

orError_t orStreamCreate(orStream_t* stream) {
  return orStreamCreateWithPriority(stream, 0, kLeastPriority);
}

orError_t orStreamCreateWithPriority(orStream_t* stream, unsigned int flags, int priority) {
  return guarded(__func__, [&] {
    check_pointer(stream, "stream");
    check_flags(flags);
    Driver& driver = Driver::get();
    const Lock lock = driver.scheduler.lock();
    *stream = handle_of(driver.scheduler.objects(lock).create_stream(driver.current(), priority));
    return orSuccess;
  });
}

orError_t orDeviceGetDefaultStream(orStream_t* stream, int device) {
  return guarded(__func__, [&] {
    check_pointer(stream, "stream");
    *stream = handle_of(*Driver::get().device(device).default_stream);
    return orSuccess;
  });
}

orError_t orStreamDestroy(orStream_t stream) {
  return guarded_release(__func__, [&] {
    Driver& driver = Driver::get();
    const Lock lock = driver.scheduler.lock();
    driver.scheduler.objects(lock).destroy_stream(driver.scheduler.stream(stream, lock));
    return orSuccess;
  });
}

orError_t orStreamQuery(orStream_t stream) {
  return guarded(__func__, [&] {
    Driver& driver = Driver::get();
    Lock lock = driver.scheduler.lock();
    Stream& target = driver.scheduler.stream(stream, lock);
    if (driver.scheduler.run_for_query(&target, target.submitted, lock)) {
      driver.scheduler.stream(stream, lock);  // throws if another thread has destroyed the stream
    }
    CaptureManager::check_not_capturing(target);
    target.device->check_healthy();
    if (!driver.scheduler.is_over(&target, target.submitted, lock)) {
      return orErrorNotReady;
    }
    driver.scheduler.tracer(lock).sync(orSyncStreamQuery, *target.device, &target, target.submitted);
    return orSuccess;
  });
}

orError_t orStreamSynchronize(orStream_t stream) {
  return guarded(__func__, [&] {
    Driver& driver = Driver::get();
    Lock lock = driver.scheduler.lock();
    Stream& target = driver.scheduler.stream(stream, lock);
    CaptureManager::check_not_capturing(target);
    driver.scheduler.wait(target, *target.device, target.submitted, lock);
    return orSuccess;
  });
}

orError_t orStreamWaitEvent(orStream_t stream, orEvent_t event, unsigned int flags) {
  return guarded(__func__, [&] {
    check_flags(flags);
    Driver& driver = Driver::get();
    Lock lock = driver.scheduler.lock();
    Stream& target = driver.scheduler.stream(stream, lock);
    const Event& mark = driver.scheduler.event(event, lock);
    target.device->check_healthy();
    if (target.capture != nullptr || mark.captured != nullptr) {
      driver.scheduler.captures(lock).wait_for_event(target, mark);
      return orSuccess;
    }
    driver.scheduler.tracer(lock).sync(orSyncEventWait, *target.device, mark.stream, mark.ticket, event, &target);
    if (mark.stream != &target && !driver.scheduler.is_over(mark.stream, mark.ticket, lock)) {
      Task task;
      task.kind = Task::Kind::kWait;
      task.wait = {mark.stream, mark.ticket};
      driver.scheduler.submit(target, task, lock);
    }
    return orSuccess;
  });
}

orError_t orStreamGetPriority(orStream_t stream, int* priority) {
  return guarded(__func__, [&] {
    check_pointer(priority, "priority");
    Driver& driver = Driver::get();
    const Lock lock = driver.scheduler.lock();
    *priority = driver.scheduler.stream(stream, lock).priority;
    return orSuccess;
  });
}

orError_t orStreamGetDevice(orStream_t stream, int* device) {
  return guarded(__func__, [&] {
    check_pointer(device, "device");
    Driver& driver = Driver::get();
    const Lock lock = driver.scheduler.lock();
    *device = driver.scheduler.stream(stream, lock).device->index;
    return orSuccess;
  });
}

orError_t orStreamGetStats(orStream_t stream, orStreamStats* stats) {
  return guarded(__func__, [&] {
    check_pointer(stats, "stats");
    Driver& driver = Driver::get();
    const Lock lock = driver.scheduler.lock();
    const Stream& target = driver.scheduler.stream(stream, lock);
    driver.scheduler.engines(lock).counters(target).write_to(*stats);
    stats->submitted = target.submitted - target.first_ticket;
    stats->completed = target.completed - target.first_ticket;
    return orSuccess;
  });
}
