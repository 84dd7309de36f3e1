// SPDX-License-Identifier: BSD-3-Clause
// Captures and graphs: the recorded nodes, and the order between them.
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

// A recorded task, or a wait for a node of another branch. A capture has one branch per participating stream; branch 0
// is the stream on which it began. The place of a node is its position in its branch, from 1 on.
struct GraphNode {
  size_t branch = 0;
  uint64_t number = 0;     // unique among the nodes of all captures; 0 for a wait
  Task task;               // for a wait only its kind is valid
  size_t wait_branch = 0;  // for a wait: the branch and the place of the node that it follows
  uint64_t wait_place = 0;
  std::vector<orOperand> operands;  // kept without observers, too, because one may observe a replay
  bool has_operands = false;        // true if the launch declared its operands, possibly none
};

// The content of a graph. Owns the state of its kernels and the streams of its branches. Handle and queued launches
// share ownership. The last owner must not hold the scheduler's mutex, because the destructor locks it.
struct GraphBody {
  GraphBody(ObjectTable& objects_, std::mutex& mutex_) : objects(objects_), mutex(mutex_) {}
  GraphBody(const GraphBody&) = delete;
  GraphBody& operator=(const GraphBody&) = delete;
  ~GraphBody();

  ObjectTable& objects;
  std::mutex& mutex;
  Device* device = nullptr;  // of branch 0
  std::vector<GraphNode> nodes;
  // The streams on which the branches are replayed. The first is null, because branch 0 uses the stream of the launch.
  std::vector<Stream*> branches;
  // The end of the newest launch, for which a later launch waits. Guarded by the scheduler's mutex.
  Stream* last_stream = nullptr;
  uint64_t last_ticket = 0;
};

// The object behind a graph handle. Guarded by the scheduler's mutex.
struct Graph : HandleSlot {
  static constexpr uint32_t kHandleKind = 3;
  std::shared_ptr<GraphBody> body;
};

inline orGraph_t handle_of(const Graph& graph) {
  return reinterpret_cast<orGraph_t>(HandleTable<Graph>::handle(graph));
}

// The number of nodes in each branch of a capture that a place follows. A vector clock, as in distributed systems,
// because branches have no order in common.
using VectorClock = std::vector<uint64_t>;

// A capture in progress. Guarded by the scheduler's mutex.
struct Capture {
  uint64_t id = 0;
  orStreamCaptureMode mode = orStreamCaptureModeGlobal;
  std::thread::id thread;      // the thread that began it
  std::string invalidated_by;  // the reason why it can only be ended; empty while it is valid
  std::vector<Stream*> branches;
  std::vector<VectorClock> clocks;  // the current clock of each branch; [branch][branch] counts its own nodes
  std::shared_ptr<GraphBody> body;
};

// The place in a capture at which a capturing stream recorded an event.
struct CapturedEvent {
  uint64_t capture = 0;  // id of the capture
  size_t branch = 0;
  VectorClock clock;
};

// Writes nodes and order as a Graphviz file. Throws Error(orErrorInvalidValue) if the file cannot be written.
void write_dot(const GraphBody& body, const char* path);

}  // namespace openreg::driver
