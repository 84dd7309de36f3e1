// SPDX-License-Identifier: BSD-3-Clause
// Unit tests of captures and replays: the nodes that a capture records, the calls that invalidate it, and the tasks
// that a launch enqueues.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "objects/capture_manager.h"
#include "schedule/graph_replay.h"
#include "unit_common.h"

namespace parts {

// The parts of the scheduler, with a CaptureManager.
struct Recording : Queues {
  std::mutex mutex;
  CaptureManager captures{objects, mutex};

  std::shared_ptr<GraphBody> end(Stream& stream) {
    std::string invalidated_by;
    std::shared_ptr<GraphBody> body;
    captures.end(stream, body, invalidated_by);
    return invalidated_by.empty() ? body : nullptr;
  }
  // Captures that `waiting` waits for all that `waited` has captured.
  void capture_wait(Stream& waiting, Stream& waited) {
    Event& event = objects.create_event(false);
    CaptureManager::record_event(event, waited);
    captures.wait_for_event(waiting, event);
  }
  // Captures a kernel on `second`, which begins after all that `first` has captured, and which `first` waits for.
  void fork_and_join(Stream& first, Stream& second) {
    capture_wait(second, first);
    captures.record(second, kernel(), {});
    capture_wait(first, second);
  }
  // Completes the task that ends a launch. Returns the stream of the launch, or null if the task is not ready.
  Stream* end_launch() {
    Stream* const stream = engines[kCompute].ready().pop();
    if (stream != nullptr) {
      const orKernel last = stream->queue.front().kernel;
      processor.complete(*stream);
      last.release(last.state);  // as the engine does, without the scheduler's mutex
    }
    return stream;
  }
};

inline void a_capture_records_a_fork_and_its_join() {
  Recording recording;
  Stream& first = recording.stream();
  Stream& second = recording.stream(1);
  Event& event = recording.objects.create_event(false);
  recording.captures.begin(first, orStreamCaptureModeRelaxed);
  CHECK(recording.captures.any() && first.capture != nullptr);
  recording.captures.record(first, kernel(), {});
  CaptureManager::record_event(event, first);
  recording.captures.wait_for_event(second, event);
  CHECK(second.capture == first.capture && second.branch == 1);
  recording.captures.wait_for_event(second, event);  // adds no node, because the stream waits for the event already
  recording.captures.record(second, kernel(), {});
  CaptureManager::record_event(event, second);
  recording.captures.wait_for_event(first, event);
  const std::shared_ptr<GraphBody> body = recording.end(first);
  CHECK(body != nullptr && !recording.captures.any() && first.capture == nullptr && second.capture == nullptr);
  CHECK(body->nodes.size() == 4 && body->branches.size() == 2 && body->branches[1]->device == second.device);
  CHECK(body->nodes[1].task.kind == Task::Kind::kWait && body->nodes[1].branch == 1 && body->nodes[1].wait_place == 1);
  CHECK(body->nodes[3].branch == 0 && body->nodes[3].wait_branch == 1 && body->nodes[3].wait_place == 2);
  CHECK(first.submitted == 0 && recording.processor.pending() == 0);  // nothing ran
}

inline void a_branch_that_begins_with_the_capture_follows_what_precedes_the_launch() {
  Recording recording;
  Stream& first = recording.stream();
  Stream& second = recording.stream();
  recording.captures.begin(first, orStreamCaptureModeRelaxed);
  recording.fork_and_join(first, second);
  const std::shared_ptr<GraphBody> body = recording.end(first);
  CHECK(body != nullptr && body->nodes.size() == 3);
  Stream& target = recording.stream();
  recording.processor.enqueue(target, kernel());
  GraphReplay replay(recording.processor);
  replay.enqueue(body, target);
  Stream* earlier = recording.engines[kCompute].ready().pop();
  CHECK(earlier == &target && recording.engines[kCompute].ready().pop() == nullptr);  // the branch is not ready yet
  recording.processor.complete(target);
  CHECK(recording.run_next() == body->branches[1]);
  CHECK(recording.end_launch() == &target);
}

inline void a_capture_that_is_not_joined_is_invalidated() {
  Recording recording;
  Stream& first = recording.stream();
  Stream& second = recording.stream();
  recording.captures.begin(first, orStreamCaptureModeRelaxed);
  recording.capture_wait(second, first);
  recording.captures.record(second, kernel(), {});
  CHECK(refuses(orErrorIllegalState, [&] { recording.end(second); }));
  CHECK(recording.end(first) == nullptr && second.capture == nullptr);
}

inline void what_a_capture_cannot_repeat_is_refused() {
  Recording recording;
  Stream& stream = recording.stream();
  Stream& outside = recording.stream();
  Event& event = recording.objects.create_event(false);
  event.stream = &outside;
  event.ticket = recording.processor.enqueue(outside, kernel());
  recording.captures.begin(stream, orStreamCaptureModeThreadLocal);
  CHECK(refuses(orErrorIllegalState, [&] { recording.captures.begin(stream, orStreamCaptureModeRelaxed); }));
  CHECK(refuses(orErrorStreamCaptureUnsupported, [&] { recording.captures.check_may_block(*stream.device); }));
  recording.captures.check_may_block(*recording.devices[1]);
  CaptureManager::check_valid(stream);
  CHECK(refuses(orErrorStreamCaptureUnsupported, [&] { recording.captures.wait_for_event(stream, event); }));
  CHECK(refuses(orErrorStreamCaptureInvalidated, [&] { CaptureManager::check_valid(stream); }));
  CHECK(refuses(orErrorStreamCaptureUnsupported, [&] { CaptureManager::check_not_capturing(stream); }));
  CHECK(recording.end(stream) == nullptr);
  CaptureManager::check_not_capturing(stream);
  recording.run_next();
}

inline void a_replay_runs_what_was_recorded_in_its_order() {
  Recording recording;
  Stream& first = recording.stream();
  Stream& second = recording.stream();
  recording.captures.begin(first, orStreamCaptureModeRelaxed);
  recording.captures.record(first, kernel(), {});
  recording.fork_and_join(first, second);
  const std::shared_ptr<GraphBody> body = recording.end(first);
  CHECK(body != nullptr);
  GraphReplay replay(recording.processor);
  Stream& target = recording.stream();
  Stream& elsewhere = recording.stream(1);
  CHECK(refuses(orErrorInvalidValue, [&] { GraphReplay::check_launch(*body, elsewhere); }));
  GraphReplay::check_launch(*body, target);
  const uint64_t ticket = replay.enqueue(body, target);
  CHECK(body.use_count() == 2);  // the last task of the launch shares ownership
  CHECK(recording.run_next() == &target && recording.run_next() == body->branches[1]);
  CHECK(recording.end_launch() == &target && target.submitted == ticket);
  CHECK(body.use_count() == 1 && recording.processor.pending() == 0);
}

}  // namespace parts
