// SPDX-License-Identifier: BSD-3-Clause
// C functions on captures and graphs.
#include "api/driver.h"

using namespace openreg::driver;

namespace {

// Returns the body of a graph. The caller shares its ownership, because another thread may destroy the handle.
std::shared_ptr<GraphBody> body_of(Driver& driver, orGraph_t graph) {
  const Lock lock = driver.scheduler.lock();
  return driver.scheduler.objects(lock).graph(graph).body;
}

void capture_info(orStream_t stream, orStreamCaptureStatus& status, uint64_t& id) {
  Driver& driver = Driver::get();
  const Lock lock = driver.scheduler.lock();
  const Capture* capture = driver.scheduler.stream(stream, lock).capture;
  if (capture == nullptr) {
    status = orStreamCaptureStatusNone;
    id = 0;
    return;
  }
  status = capture->invalidated_by.empty() ? orStreamCaptureStatusActive : orStreamCaptureStatusInvalidated;
  id = capture->id;
}

}  // namespace

orError_t orStreamBeginCapture(orStream_t stream, orStreamCaptureMode mode) {
  return guarded(__func__, [&] {
    OPENREG_DRIVER_CHECK(mode >= orStreamCaptureModeGlobal && mode <= orStreamCaptureModeRelaxed, orErrorInvalidValue,
                         "capture mode ", static_cast<int>(mode), " is unknown; pass one of orStreamCaptureMode");
    Driver& driver = Driver::get();
    const Lock lock = driver.scheduler.lock();
    driver.scheduler.begin_capture(driver.scheduler.stream(stream, lock), mode, lock);
    return orSuccess;
  });
}

orError_t orStreamEndCapture(orStream_t stream, orGraph_t* graph) {
  return guarded(__func__, [&] {
    check_pointer(graph, "graph");
    Driver& driver = Driver::get();
    std::shared_ptr<GraphBody> body;  // outlives the lock, because its destructor takes the mutex
    std::string invalidated_by;
    const Lock lock = driver.scheduler.lock();
    *graph = nullptr;
    driver.scheduler.end_capture(driver.scheduler.stream(stream, lock), body, invalidated_by, lock);
    OPENREG_DRIVER_CHECK(invalidated_by.empty(), orErrorStreamCaptureInvalidated,
                         "the capture was invalidated and is dropped: ", invalidated_by,
                         "; correct that and capture again");
    *graph = handle_of(driver.scheduler.objects(lock).create_graph(body));  // keeps a share, because it may throw
    return orSuccess;
  });
}

orError_t orStreamIsCapturing(orStream_t stream, orStreamCaptureStatus* status) {
  return guarded(__func__, [&] {
    check_pointer(status, "status");
    uint64_t id = 0;
    capture_info(stream, *status, id);
    return orSuccess;
  });
}

orError_t orStreamGetCaptureInfo(orStream_t stream, orStreamCaptureStatus* status, uint64_t* id) {
  return guarded(__func__, [&] {
    check_pointer(status, "status");
    check_pointer(id, "id");
    capture_info(stream, *status, *id);
    return orSuccess;
  });
}

orError_t orGraphLaunch(orGraph_t graph, orStream_t stream) {
  return guarded(__func__, [&] {
    Driver& driver = Driver::get();
    const std::shared_ptr<GraphBody> body = body_of(driver, graph);
    driver.before_enqueue();
    Lock lock = driver.scheduler.lock();
    Stream& target = driver.scheduler.stream(stream, lock);
    driver.scheduler.launch_graph(body, target, lock);
    return orSuccess;
  });
}

orError_t orGraphDestroy(orGraph_t graph) {
  return guarded_release(__func__, [&] {
    Driver& driver = Driver::get();
    std::shared_ptr<GraphBody> body;  // outlives the lock, because its destructor takes the mutex
    const Lock lock = driver.scheduler.lock();
    body = driver.scheduler.objects(lock).destroy_graph(driver.scheduler.objects(lock).graph(graph));
    return orSuccess;
  });
}

orError_t orGraphGetNodeCount(orGraph_t graph, size_t* count) {
  return guarded(__func__, [&] {
    check_pointer(count, "count");
    *count = body_of(Driver::get(), graph)->nodes.size();
    return orSuccess;
  });
}

orError_t orGraphDebugDotPrint(orGraph_t graph, const char* path) {
  return guarded(__func__, [&] {
    check_pointer(path, "path");
    write_dot(*body_of(Driver::get(), graph), path);
    return orSuccess;
  });
}
