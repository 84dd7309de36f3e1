// SPDX-License-Identifier: BSD-3-Clause
// The captures in progress, which record the tasks of capturing streams instead of running them.
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

// The captures in progress of all devices. Guarded by the scheduler's mutex. `mutex` is that mutex, because destructors
// of graphs lock it.
class CaptureManager {
 public:
  CaptureManager(ObjectTable& objects, std::mutex& mutex) : objects_(objects), mutex_(mutex) {}
  CaptureManager(const CaptureManager&) = delete;
  CaptureManager& operator=(const CaptureManager&) = delete;

  // Returns true if any capture is in progress.
  bool any() const { return !captures_.empty(); }
  // Begins a capture on `stream`. Throws Error(orErrorIllegalState) if the stream is capturing already, and what
  // Device::check_healthy() throws.
  void begin(Stream& stream, orStreamCaptureMode mode);
  // Ends the capture and returns its graph. If the capture was invalidated, the graph has no branches and
  // `invalidated_by` is the reason, else empty. The caller releases the mutex before it destroys the graph. Throws
  // Error(orErrorIllegalState) unless the capture began on `stream`.
  std::shared_ptr<GraphBody> end(Stream& stream, std::string& invalidated_by);

  // Appends a node to the branch of a capturing stream and returns its number. Takes ownership of the kernel's state.
  uint64_t record(Stream& stream, const Task& task, const OperandSpan& operands);
  // Sets `event` to the current place of a capturing stream in its capture.
  static void record_event(Event& event, Stream& stream);
  // Makes `stream` wait for `event`, where the stream is capturing or the event was recorded in a capture. In the
  // second case the stream joins that capture. Throws Error(orErrorStreamCaptureUnsupported) if the event is outside of
  // the stream's capture, and what Device::check_healthy() throws.
  void wait_for_event(Stream& stream, const Event& event);

  // Throws Error(orErrorStreamCaptureInvalidated) if the stream's capture was invalidated and can only be ended.
  static void check_valid(const Stream& stream) {
    if (stream.capture != nullptr) [[unlikely]] {
      check_valid(*stream.capture);
    }
  }
  // Throws Error(orErrorStreamCaptureUnsupported) and invalidates the capture if `stream` is capturing. For calls that
  // synchronize or query a stream.
  static void check_not_capturing(Stream& stream);
  // Throws Error(orErrorStreamCaptureUnsupported) and invalidates the capture if `event` was recorded in one. For calls
  // that synchronize or query an event.
  void check_not_captured(const Event& event);
  // Throws Error(orErrorStreamCaptureUnsupported) if a stream of `device` is capturing in a mode that forbids the
  // calling thread to block on the device. Does not invalidate the capture.
  void check_may_block(const Device& device) const;
  // Throws Error(orErrorStreamCaptureUnsupported) and invalidates the capture if `stream` is capturing. For waits on
  // semaphores, which a replay cannot repeat because the value is reached already.
  static void check_may_wait_outside(Stream& stream);

 private:
  static void check_valid(const Capture& capture);

  ObjectTable& objects_;
  std::mutex& mutex_;
  std::vector<std::unique_ptr<Capture>> captures_;
  uint64_t newest_ = 0;
  uint64_t newest_node_ = 0;
};

}  // namespace openreg::driver
