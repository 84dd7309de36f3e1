// SPDX-License-Identifier: BSD-3-Clause
// Captures under way: what is submitted to a capturing stream is recorded instead of run.
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

// Guarded by the scheduler's mutex, which graphs that are dropped take.
class CaptureManager {
 public:
  CaptureManager(ObjectTable& objects, std::mutex& mutex) : objects_(objects), mutex_(mutex) {}
  CaptureManager(const CaptureManager&) = delete;
  CaptureManager& operator=(const CaptureManager&) = delete;

  bool any() const { return !captures_.empty(); }
  // Throws Error(orErrorIllegalState) while the stream is capturing already, and as Device::check_healthy() does.
  void begin(Stream& stream, orStreamCaptureMode mode);
  // Throws Error(orErrorIllegalState) unless the capture began on the stream. The graph has no branches, and
  // `invalidated_by` says why, when the capture was invalidated. The caller drops what is returned after the lock.
  std::shared_ptr<GraphBody> end(Stream& stream, std::string& invalidated_by);

  // Of a capturing stream: the next node of its branch. Returns its number.
  uint64_t record(Stream& stream, const Task& task, const OperandSpan& operands);
  static void record_event(Event& event, Stream& stream);
  // Throws Error(orErrorStreamCaptureUnsupported) for an event outside of the stream's capture. A stream that waits for
  // an event of a capture joins it.
  void wait_for_event(Stream& stream, const Event& event);

  // Throws Error(orErrorStreamCaptureInvalidated) when the stream's capture can only be ended.
  static void check_valid(const Stream& stream) {
    if (stream.capture != nullptr) [[unlikely]] {
      check_valid(*stream.capture);
    }
  }
  // Refuses a call that would wait for the stream, the event or the whole device, with
  // Error(orErrorStreamCaptureUnsupported); the first two invalidate the capture.
  static void check_not_capturing(Stream& stream);
  void check_not_captured(const Event& event);
  void check_may_block(const Device& device) const;
  // The same for a wait that a replay could not repeat.
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
