// SPDX-License-Identifier: BSD-3-Clause
// Captures: what is submitted to a capturing stream is recorded, and replayed as often as the graph is launched.
//
// REAL HW: the driver compiles the recorded commands into one buffer; here a launch submits them one by one.
#include <algorithm>
#include <utility>

#include "error.h"
#include "scheduler.h"

namespace openreg::driver {

namespace {

// Adds a stream as a new lane whose work comes after what `seen` says.
void join_capture(Capture& capture, Stream& stream, std::vector<uint64_t> seen) {
  stream.capture = &capture;
  stream.lane = capture.lanes.size();
  capture.lanes.push_back(&stream);
  seen.resize(capture.lanes.size());
  for (auto& other : capture.seen) {
    other.resize(capture.lanes.size());
  }
  capture.seen.push_back(std::move(seen));
}

void spoil(Capture& capture, std::string reason) {
  if (capture.spoiled_by.empty()) {
    capture.spoiled_by = std::move(reason);
  }
}

// The end of a launch keeps the graph alive until it has run.
void release_body(void* state) {
  delete static_cast<std::shared_ptr<GraphBody>*>(state);
}

}  // namespace

void Scheduler::begin_capture(Stream& stream, orStreamCaptureMode mode, const Lock& lock) {
  OPENREG_DRIVER_CHECK(stream.capture == nullptr, orErrorIllegalState,
                       "the stream is capturing already; end that capture with orStreamEndCapture() first");
  check_healthy(*stream.device, lock);
  auto capture = std::make_unique<Capture>();
  capture->id = ++newest_capture_;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->body = std::make_shared<GraphBody>(*this);
  capture->body->device = stream.device;
  captures_.push_back(std::move(capture));
  join_capture(*captures_.back(), stream, {});
  update_wanted(lock);
}

std::shared_ptr<GraphBody> Scheduler::end_capture(Stream& stream, std::string& spoiled_by, const Lock& lock) {
  OPENREG_DRIVER_CHECK(stream.capture != nullptr && stream.lane == 0, orErrorIllegalState,
                       stream.capture == nullptr ? "the stream is not capturing; call orStreamBeginCapture() first"
                                                 : "the capture began on another stream; end it on that one");
  const auto found = std::find_if(captures_.begin(), captures_.end(),
                                  [&](const auto& capture) { return capture.get() == stream.capture; });
  const std::unique_ptr<Capture> capture = std::move(*found);
  captures_.erase(found);
  update_wanted(lock);
  for (size_t lane = 0; lane < capture->lanes.size(); ++lane) {
    if (capture->seen[0][lane] != capture->seen[lane][lane]) {
      spoil(*capture, join("stream ", handle(*capture->lanes[lane]),
                           " joined the capture and was not joined back: record an event after its last work and let "
                           "the first stream wait for it"));
    }
    capture->lanes[lane]->capture = nullptr;
  }
  spoiled_by = capture->spoiled_by;
  if (spoiled_by.empty()) {
    capture->body->lanes.push_back(nullptr);
    for (size_t lane = 1; lane < capture->lanes.size(); ++lane) {
      const Stream& original = *capture->lanes[lane];
      capture->body->lanes.push_back(&create_stream(*original.device, original.priority, lock));
    }
  }
  return std::move(capture->body);
}

void Scheduler::record_node(Stream& stream, const Task& task, size_t wait_lane, uint64_t wait_place,
                            const Operands& operands) {
  Capture& capture = *stream.capture;
  GraphNode node;
  node.lane = stream.lane;
  node.task = task;
  node.wait_lane = wait_lane;
  node.wait_place = wait_place;
  node.has_operands = operands.data != nullptr;
  node.operands.assign(operands.data, operands.data + operands.count);
  capture.body->nodes.push_back(std::move(node));
  ++capture.seen[stream.lane][stream.lane];
}

void Scheduler::record_in_capture(Event& event, Stream& stream, const Lock& /*lock*/) {
  ++event.record;
  event.stream = nullptr;
  event.captured =
      std::make_shared<CaptureMark>(CaptureMark{stream.capture->id, stream.lane, stream.capture->seen[stream.lane]});
}

void Scheduler::wait_in_capture(Stream& stream, const Event& event, const Lock& lock) {
  if (event.captured == nullptr) {
    if (event.stream == nullptr || event.stream->completed >= event.ticket) {
      return;  // nothing to wait for
    }
    spoil(*stream.capture, "a captured stream was told to wait for work outside of the capture");
    throw Error(orErrorStreamCaptureUnsupported,
                "a capturing stream cannot wait for work that is not part of the capture; wait before it begins");
  }
  const CaptureMark& mark = *event.captured;
  const auto found = std::find_if(captures_.begin(), captures_.end(),
                                  [&](const auto& capture) { return capture->id == mark.capture; });
  OPENREG_DRIVER_CHECK(found != captures_.end(), orErrorStreamCaptureUnsupported,
                       "the event was recorded in a capture that has ended, and marks a place in its graph; record it "
                       "again on a stream");
  Capture& capture = **found;
  OPENREG_DRIVER_CHECK(stream.capture == nullptr || stream.capture == &capture, orErrorStreamCaptureUnsupported,
                       "the event belongs to another capture; a capture cannot wait for another one");
  if (stream.capture == nullptr) {
    check_healthy(*stream.device, lock);
    join_capture(capture, stream, {});
  }
  std::vector<uint64_t>& seen = capture.seen[stream.lane];
  const bool known = mark.lane == stream.lane || seen[mark.lane] >= mark.seen[mark.lane];
  for (size_t lane = 0; lane < mark.seen.size(); ++lane) {
    seen[lane] = lane == stream.lane ? seen[lane] : std::max(seen[lane], mark.seen[lane]);
  }
  if (!known) {
    Task wait;
    wait.kind = Task::Kind::kWait;
    record_node(stream, wait, mark.lane, mark.seen[mark.lane]);
  }
}

void Scheduler::check_not_capturing(Stream& stream, const Lock& /*lock*/) {
  if (stream.capture == nullptr) {
    return;
  }
  spoil(*stream.capture, "the program asked for the result of work that was recorded, not run");
  throw Error(
      orErrorStreamCaptureUnsupported,
      "the stream is capturing, so its work does not run and cannot be waited for or asked about (a copy from or "
      "to pageable memory and .item() wait too); take the call out of the capture");
}

void Scheduler::check_not_captured(const Event& event, const Lock& /*lock*/) {
  if (event.captured == nullptr) {
    return;
  }
  for (const auto& capture : captures_) {
    if (capture->id == event.captured->capture) {
      spoil(*capture, "the program asked whether an event was reached that was recorded in the capture");
    }
  }
  throw Error(orErrorStreamCaptureUnsupported,
              "the event was recorded in a capture and marks a place in its graph, not work that runs; record it on a "
              "stream outside of the capture");
}

void Scheduler::check_may_wait_outside(Stream& stream, const Lock& /*lock*/) {
  if (stream.capture == nullptr) {
    return;
  }
  spoil(*stream.capture, "a captured stream was told to wait for a semaphore");
  throw Error(
      orErrorStreamCaptureUnsupported,
      "a capturing stream cannot wait for a semaphore: a replay would find the value reached; let a stream wait "
      "before it launches the graph");
}

void Scheduler::check_may_block(const Device& device, const Lock& /*lock*/) {
  for (const auto& capture : captures_) {
    const bool concerns =
        capture->mode == orStreamCaptureModeGlobal ||
        (capture->mode == orStreamCaptureModeThreadLocal && capture->thread == std::this_thread::get_id());
    const bool captured = std::any_of(capture->lanes.begin(), capture->lanes.end(),
                                      [&](const Stream* lane) { return lane->device == &device; });
    OPENREG_DRIVER_CHECK(!concerns || !captured, orErrorStreamCaptureUnsupported, "a stream of device ", device.index,
                         " is capturing, and this call would wait for the whole device; take it out of the capture, or "
                         "capture in a more relaxed mode");
  }
}

void Scheduler::launch_graph(const std::shared_ptr<GraphBody>& body, Stream& stream, Lock& lock) {
  OPENREG_DRIVER_CHECK(stream.capture == nullptr, orErrorStreamCaptureUnsupported,
                       "a graph cannot be launched on a capturing stream; end the capture first");
  OPENREG_DRIVER_CHECK(stream.device == body->device, orErrorInvalidValue, "the graph was captured on device ",
                       body->device->index, " and cannot be launched on a stream of device ", stream.device->index);
  make_room(stream, lock);
  for (const Stream* lane : body->lanes) {
    check_healthy(lane == nullptr ? *stream.device : *lane->device, lock);
  }
  const uint64_t launch = ++newest_graph_launch_;
  const auto append_wait = [&](Stream& waiting, Stream& waited, uint64_t ticket) {
    Task task;
    task.kind = Task::Kind::kWait;
    task.wait = {&waited, ticket};
    return append(waiting, task, lock, {}, launch);
  };
  const auto target = [&](size_t lane) -> Stream& { return lane == 0 ? stream : *body->lanes[lane]; };
  if (body->last_stream != nullptr && body->last_stream != &stream) {
    append_wait(stream, *body->last_stream, body->last_ticket);
  }
  std::vector<std::vector<uint64_t>> tickets(body->lanes.size());  // of every place that may be waited for
  for (size_t lane = 0; lane < tickets.size(); ++lane) {
    tickets[lane].push_back(target(lane).submitted);
  }
  for (const GraphNode& node : body->nodes) {
    uint64_t ticket = 0;
    if (node.task.kind == Task::Kind::kWait) {
      ticket = append_wait(target(node.lane), target(node.wait_lane), tickets[node.wait_lane][node.wait_place]);
    } else {
      Task task = node.task;
      if (task.kind == Task::Kind::kKernel) {
        task.kernel.release = nullptr;  // the graph keeps the state for the next launch
      }
      const Operands operands{node.has_operands ? node.operands.data() : nullptr, node.operands.size()};
      ticket = append(target(node.lane), task, lock, operands, launch);
    }
    if (tickets.size() > 1) {
      tickets[node.lane].push_back(ticket);
    }
  }
  auto keep = std::make_unique<std::shared_ptr<GraphBody>>(body);
  Task end;
  end.kind = Task::Kind::kKernel;
  end.kernel = {"graph", nullptr, keep.get(), &release_body};
  body->last_ticket = append(stream, end, lock);
  body->last_stream = &stream;
  keep.release();  // the entry owns it now
  relieve_backlog(lock);
}

}  // namespace openreg::driver
