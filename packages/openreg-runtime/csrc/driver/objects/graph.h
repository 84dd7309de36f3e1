// SPDX-License-Identifier: BSD-3-Clause
// Recorded work: what a capture collects and a graph launches.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/handle_table.h"
#include "objects/stream.h"
#include "openreg.h"

namespace openreg::driver {

class ObjectTable;

// A capture has one branch per stream that takes part; branch 0 is the stream on which it began. A place in a branch is
// the number of nodes up to and including it.
struct GraphNode {
  size_t branch = 0;
  uint64_t number = 0;  // among all that were recorded; of a wait 0
  Task task;            // of a wait only the kind counts:
  size_t wait_branch = 0;
  uint64_t wait_place = 0;
  std::vector<orOperand> operands;  // kept for observers of replays, whoever observes the capture
  bool has_operands = false;
};

// Everything that was recorded. Owns the state of its kernels and the streams of its branches. Shared by the handle and
// by launches that are still queued. Destroy it without holding the scheduler's mutex.
struct GraphBody {
  GraphBody(ObjectTable& objects_, std::mutex& mutex_) : objects(objects_), mutex(mutex_) {}
  GraphBody(const GraphBody&) = delete;
  GraphBody& operator=(const GraphBody&) = delete;
  ~GraphBody();

  ObjectTable& objects;
  std::mutex& mutex;
  Device* device = nullptr;  // of branch 0
  std::vector<GraphNode> nodes;
  // Where the branches are replayed; the first is null, for the stream of the launch.
  std::vector<Stream*> branches;
  // The end of the launch before, which the next one follows. Guarded by the scheduler's mutex.
  Stream* last_stream = nullptr;
  uint64_t last_ticket = 0;
};

struct Graph : HandleSlot {
  static constexpr uint32_t kHandleKind = 3;
  std::shared_ptr<GraphBody> body;
};

inline orGraph_t handle_of(const Graph& graph) {
  return reinterpret_cast<orGraph_t>(HandleTable<Graph>::handle(graph));
}

// For each branch of a capture, how many of its nodes come before something: what happened before, as in any system
// without a common clock.
using VectorClock = std::vector<uint64_t>;

// Guarded by the scheduler's mutex.
struct Capture {
  uint64_t id = 0;
  orStreamCaptureMode mode = orStreamCaptureModeGlobal;
  std::thread::id thread;      // that began it
  std::string invalidated_by;  // why it can only be ended; empty while it is valid
  std::vector<Stream*> branches;
  std::vector<VectorClock> clocks;  // of each branch, for its next node; [branch][branch] counts its nodes
  std::shared_ptr<GraphBody> body;
};

// Where an event stands that was recorded by a capturing stream.
struct CapturedEvent {
  uint64_t capture = 0;
  size_t branch = 0;
  VectorClock clock;
};

// Writes nodes and order as a Graphviz file. Throws Error(orErrorInvalidValue) when the file cannot be written.
void write_dot(const GraphBody& body, const char* path);

}  // namespace openreg::driver
