// SPDX-License-Identifier: BSD-3-Clause
// CaptureManager holds the captures in progress. A capture records the tasks of its streams as nodes of a graph instead
// of executing them, as in CUDA graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "objects/device.h"
#include "objects/event.h"
#include "objects/graph.h"
#include "objects/object_table.h"
#include "objects/stream.h"
#include "openreg.h"

namespace openreg::driver {

// The captures in progress, of all devices. A capture begins on one stream, and a further stream joins it when it waits
// for an event of the capture. The nodes that one stream records are a branch. Guarded by the scheduler's mutex.
class CaptureManager {
 public:
  // `mutex` is the scheduler's mutex, which the destructor of a graph locks.
  CaptureManager(ObjectTable& objects, std::mutex& mutex) : objects_(objects), mutex_(mutex) {}
  CaptureManager(const CaptureManager&) = delete;
  CaptureManager& operator=(const CaptureManager&) = delete;

  // Returns true if any capture is in progress.
  bool any() const { return !captures_.empty(); }
  // Begins a capture on `stream`. Throws Error(orErrorIllegalState) if the stream is capturing already. Throws as
  // Device::check_healthy() does.
  void begin(Stream& stream, orStreamCaptureMode mode);
  // Ends the capture and sets `body` to its graph. If the capture was invalidated, or the first stream does not wait
  // for the end of each branch, sets `invalidated_by` to the reason and `body` to a graph without branches; otherwise
  // clears `invalidated_by`. The caller releases the mutex before it destroys the graph, also after an exception.
  // Throws Error(orErrorIllegalState) unless the capture began on `stream`.
  void end(Stream& stream, std::shared_ptr<GraphBody>& body, std::string& invalidated_by);

  // Appends a node to the branch of a capturing stream and returns its number. If the task is a kernel, takes ownership
  // of its state.
  uint64_t record(Stream& stream, const Task& task, const OperandSpan& operands);
  // Records `event` on a capturing stream, at the current end of the stream's branch.
  static void record_event(Event& event, Stream& stream);
  // Makes `stream` wait for `event`, if the stream is capturing, the event was recorded in a capture, or both. A stream
  // that is not capturing joins the capture of the event. Throws Error(orErrorStreamCaptureUnsupported) if the event is
  // not part of the stream's capture or its capture has ended. Throws as check_valid() and Device::check_healthy() do.
  void wait_for_event(Stream& stream, const Event& event);

  // Throws Error(orErrorStreamCaptureInvalidated) if the stream is in a capture that was invalidated.
  static void check_valid(const Stream& stream) {
    if (stream.capture != nullptr) [[unlikely]] {
      check_valid(*stream.capture);
    }
  }
  // Throws Error(orErrorStreamCaptureUnsupported) and invalidates the capture if `stream` is capturing. Calls that
  // synchronize or query a stream use it.
  static void check_not_capturing(Stream& stream);
  // Throws Error(orErrorStreamCaptureUnsupported) and invalidates the capture if `event` was recorded in one. Calls
  // that synchronize or query an event use it.
  void check_not_captured(const Event& event);
  // Throws Error(orErrorStreamCaptureUnsupported) if a stream of `device` is capturing in a mode that forbids the
  // calling thread to block on the device. Does not invalidate the capture.
  void check_may_block(const Device& device) const;
  // Throws Error(orErrorStreamCaptureUnsupported) and invalidates the capture if `stream` is capturing. Waits for
  // semaphores use it: a replay could not repeat them, because the value would be reached already.
  static void check_may_wait_outside(Stream& stream);

 private:
  static void check_valid(const Capture& capture);

  ObjectTable& objects_;
  std::mutex& mutex_;
  std::vector<std::unique_ptr<Capture>> captures_;
  uint64_t newest_ = 0;       // id of the newest capture
  uint64_t newest_node_ = 0;  // number of the newest node
};

}  // namespace openreg::driver
