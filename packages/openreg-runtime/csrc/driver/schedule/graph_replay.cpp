// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: a launch is one command with the address of the recorded buffer. Here a launch enqueues the nodes one by
// one.
#include "schedule/graph_replay.h"

#include <vector>

#include "base/error.h"

namespace openreg::driver {

namespace {

// Releases the share of the graph that the last task of a launch owns, so that the graph exists until the launch is
// complete.
void release_body(void* state) {
  delete static_cast<std::shared_ptr<GraphBody>*>(state);
}

}  // namespace

void GraphReplay::check_launch(const GraphBody& body, const Stream& stream) {
  OPENREG_DRIVER_CHECK(stream.capture == nullptr, orErrorStreamCaptureUnsupported,
                       "a graph cannot be launched on a capturing stream; end the capture first");
  OPENREG_DRIVER_CHECK(stream.device == body.device, orErrorInvalidValue, "the graph was captured on device ",
                       body.device->index, " and cannot be launched on a stream of device ", stream.device->index,
                       "; launch it on a stream of its own device");
}

uint64_t GraphReplay::enqueue_wait(Stream& waiting, Stream& waited, uint64_t ticket) {
  Task task;
  task.kind = Task::Kind::kWait;
  task.wait = {&waited, ticket};
  return processor_.enqueue(waiting, task, {}, {newest_launch_, 0});
}

uint64_t GraphReplay::enqueue(const std::shared_ptr<GraphBody>& body, Stream& stream) {
  ++newest_launch_;
  const auto target = [&](size_t branch) -> Stream& { return branch == 0 ? stream : *body->branches[branch]; };
  if (body->last_stream != nullptr && body->last_stream != &stream) {
    enqueue_wait(stream, *body->last_stream, body->last_ticket);
  }
  std::vector<std::vector<uint64_t>> tickets(body->branches.size());  // tickets[branch][place], for waits
  for (size_t branch = 0; branch < tickets.size(); ++branch) {
    tickets[branch].push_back(target(branch).submitted);
  }
  // Owned by the last task. If the host has no memory left for a task before it, the graph is never destroyed, because
  // the nodes that were enqueued use it.
  auto* const keep = new std::shared_ptr<GraphBody>(body);
  for (const GraphNode& node : body->nodes) {
    uint64_t ticket = 0;
    if (node.task.kind == Task::Kind::kWait) {
      ticket = enqueue_wait(target(node.branch), target(node.wait_branch), tickets[node.wait_branch][node.wait_place]);
    } else {
      Task task = node.task;
      if (task.kind == Task::Kind::kKernel) {
        task.kernel.release = nullptr;  // the graph keeps the state for further launches
      }
      const OperandSpan operands{node.has_operands ? node.operands.data() : nullptr, node.operands.size()};
      ticket = processor_.enqueue(target(node.branch), task, operands, {newest_launch_, node.number});
    }
    if (tickets.size() > 1) {
      tickets[node.branch].push_back(ticket);
    }
  }
  Task end;
  end.kind = Task::Kind::kKernel;
  end.kernel = {"graph", nullptr, keep, &release_body};
  body->last_ticket = processor_.enqueue(stream, end);
  body->last_stream = &stream;
  return body->last_ticket;
}

}  // namespace openreg::driver
