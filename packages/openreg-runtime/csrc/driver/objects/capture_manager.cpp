// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the driver compiles the recorded commands into one buffer, which the device executes as a whole.
#include "objects/capture_manager.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/error.h"

namespace openreg::driver {

namespace {

// Adds `stream` to `capture` as a new branch that follows no node yet. Changes nothing if the host is out of memory.
void join_capture(Capture& capture, Stream& stream) {
  const size_t count = capture.branches.size() + 1;
  BranchClock clock(count);
  for (BranchClock& other : capture.clocks) {
    other.reserve(count);
  }
  capture.clocks.reserve(count);
  capture.branches.reserve(count);
  // Nothing from here on allocates.
  for (BranchClock& other : capture.clocks) {
    other.resize(count);
  }
  capture.clocks.push_back(std::move(clock));
  capture.branches.push_back(&stream);
  stream.capture = &capture;
  stream.branch = count - 1;
}

// Invalidates `capture`, unless it is invalid already, because only the first reason is reported.
void invalidate(Capture& capture, std::string reason) {
  if (capture.invalidated_by.empty()) {
    capture.invalidated_by = std::move(reason);
  }
}

// Makes room for one more node, so that the next append_node() does not allocate.
void reserve_node(GraphBody& body) {
  if (body.nodes.size() == body.nodes.capacity()) {
    body.nodes.reserve(std::max<size_t>(16, 2 * body.nodes.size()));
  }
}

void append_node(Stream& stream, GraphNode node) {
  node.branch = stream.branch;
  stream.capture->body->nodes.push_back(std::move(node));
  ++stream.capture->clocks[stream.branch][stream.branch];
}

}  // namespace

void CaptureManager::begin(Stream& stream, orStreamCaptureMode mode) {
  OPENREG_DRIVER_CHECK(stream.capture == nullptr, orErrorIllegalState,
                       "the stream is capturing already; end that capture with orStreamEndCapture() first");
  stream.device->check_healthy();
  captures_.reserve(captures_.size() + 1);
  auto capture = std::make_unique<Capture>();
  capture->id = ++newest_;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->body = std::make_shared<GraphBody>(objects_, mutex_);
  capture->body->device = stream.device;
  join_capture(*capture, stream);
  captures_.push_back(std::move(capture));  // does not allocate
}

void CaptureManager::end(Stream& stream, std::shared_ptr<GraphBody>& body, std::string& invalidated_by) {
  OPENREG_DRIVER_CHECK(stream.capture != nullptr && stream.branch == 0, orErrorIllegalState,
                       stream.capture == nullptr ? "the stream is not capturing; call orStreamBeginCapture() first"
                                                 : "the capture began on another stream; end it on that one");
  const auto found = std::find_if(captures_.begin(), captures_.end(),
                                  [&](const auto& capture) { return capture.get() == stream.capture; });
  const std::unique_ptr<Capture> capture = std::move(*found);
  captures_.erase(found);
  body = std::move(capture->body);
  for (Stream* branch : capture->branches) {
    branch->capture = nullptr;
  }
  // What follows may throw if the host is out of memory. The capture has then ended, and the caller drops its graph.
  for (size_t branch = 0; branch < capture->branches.size(); ++branch) {
    if (capture->clocks[0][branch] != capture->clocks[branch][branch]) {
      invalidate(*capture, join("stream ", handle_of(*capture->branches[branch]),
                                " joined the capture and was not joined back: record an event after its last work and "
                                "let the first stream wait for it"));
    }
  }
  invalidated_by = capture->invalidated_by;
  if (invalidated_by.empty()) {
    body->branches.reserve(capture->branches.size());
    body->branches.push_back(nullptr);
    for (size_t branch = 1; branch < capture->branches.size(); ++branch) {
      const Stream& original = *capture->branches[branch];
      body->branches.push_back(&objects_.create_stream(*original.device, original.priority));
    }
  }
}

uint64_t CaptureManager::record(Stream& stream, const Task& task, const OperandSpan& operands) {
  GraphNode node;
  node.number = ++newest_node_;
  node.task = task;
  node.has_operands = operands.data != nullptr;
  node.operands.assign(operands.data, operands.data + operands.count);
  append_node(stream, std::move(node));
  return newest_node_;
}

void CaptureManager::record_event(Event& event, Stream& stream) {
  ++event.record;
  event.skipped = false;
  event.stream = nullptr;
  event.captured = std::make_shared<CapturedEvent>(
      CapturedEvent{stream.capture->id, stream.branch, stream.capture->clocks[stream.branch]});
}

void CaptureManager::wait_for_event(Stream& stream, const Event& event) {
  check_valid(stream);
  if (event.captured == nullptr) {
    if (event.stream == nullptr || event.stream->completed >= event.ticket) {
      return;  // the event was never recorded or is complete
    }
    invalidate(*stream.capture, "a capturing stream waited for an event from outside of the capture");
    throw Error(orErrorStreamCaptureUnsupported,
                "a capturing stream cannot wait for work that is not part of the capture; let it wait before the "
                "capture begins");
  }
  const CapturedEvent& mark = *event.captured;
  const auto found = std::find_if(captures_.begin(), captures_.end(),
                                  [&](const auto& capture) { return capture->id == mark.capture; });
  OPENREG_DRIVER_CHECK(
      found != captures_.end(), orErrorStreamCaptureUnsupported,
      "the event was recorded in a capture that has ended, and marks a place in its graph, not work that runs; "
      "record it again on a stream");
  Capture& capture = **found;
  check_valid(capture);
  OPENREG_DRIVER_CHECK(stream.capture == nullptr || stream.capture == &capture, orErrorStreamCaptureUnsupported,
                       "the event belongs to another capture, and a capture cannot wait for another one; record the "
                       "event on a stream of this capture");
  reserve_node(*capture.body);  // the stream would count as waiting if the append of the wait failed below
  const bool is_new_branch = stream.capture == nullptr;
  if (is_new_branch) {
    stream.device->check_healthy();
    join_capture(capture, stream);
  }
  BranchClock& clock = capture.clocks[stream.branch];
  // A new branch waits even if no node precedes the event: a replay then waits for the earlier tasks of the stream that
  // it is launched on.
  const bool known = !is_new_branch && (mark.branch == stream.branch || clock[mark.branch] >= mark.clock[mark.branch]);
  for (size_t branch = 0; branch < mark.clock.size(); ++branch) {
    clock[branch] = branch == stream.branch ? clock[branch] : std::max(clock[branch], mark.clock[branch]);
  }
  if (!known) {
    GraphNode wait;
    wait.task.kind = Task::Kind::kWait;
    wait.wait_branch = mark.branch;
    wait.wait_place = mark.clock[mark.branch];
    append_node(stream, std::move(wait));
  }
}

void CaptureManager::check_valid(const Capture& capture) {
  OPENREG_DRIVER_CHECK(capture.invalidated_by.empty(), orErrorStreamCaptureInvalidated,
                       "the capture of this stream was invalidated: ", capture.invalidated_by,
                       "; end it with orStreamEndCapture()");
}

void CaptureManager::check_not_capturing(Stream& stream) {
  if (stream.capture == nullptr) {
    return;
  }
  invalidate(*stream.capture, "a call needed the result of work that was recorded, not run");
  throw Error(orErrorStreamCaptureUnsupported,
              "the stream is capturing, so its tasks do not run and cannot be waited for or queried (a copy from or to "
              "pageable memory and .item() wait too); take the call out of the capture");
}

void CaptureManager::check_not_captured(const Event& event) {
  if (event.captured == nullptr) {
    return;
  }
  for (const auto& capture : captures_) {
    if (capture->id == event.captured->capture) {
      invalidate(*capture, "a call queried an event that was recorded in the capture");
    }
  }
  throw Error(orErrorStreamCaptureUnsupported,
              "the event was recorded in a capture and marks a place in its graph, not work that runs; record it on a "
              "stream outside of the capture");
}

void CaptureManager::check_may_wait_outside(Stream& stream) {
  if (stream.capture == nullptr) {
    return;
  }
  invalidate(*stream.capture, "a capturing stream waited for a semaphore");
  throw Error(
      orErrorStreamCaptureUnsupported,
      "a capturing stream cannot wait for a semaphore: a replay would find the value reached; let a stream wait "
      "before it launches the graph");
}

void CaptureManager::check_may_block(const Device& device) const {
  for (const auto& capture : captures_) {
    const bool concerns =
        capture->mode == orStreamCaptureModeGlobal ||
        (capture->mode == orStreamCaptureModeThreadLocal && capture->thread == std::this_thread::get_id());
    const bool captured = std::any_of(capture->branches.begin(), capture->branches.end(),
                                      [&](const Stream* branch) { return branch->device == &device; });
    OPENREG_DRIVER_CHECK(!concerns || !captured, orErrorStreamCaptureUnsupported, "a stream of device ", device.index,
                         " is capturing, and this call would wait for the whole device; take it out of the capture, or "
                         "capture in a more relaxed mode");
  }
}

}  // namespace openreg::driver
