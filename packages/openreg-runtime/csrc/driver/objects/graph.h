// SPDX-License-Identifier: BSD-3-Clause
// GraphBody is the content of a graph, and Capture is a capture in progress, as in CUDA graphs. A capture records tasks
// of streams as nodes of a graph, and each launch of the graph replays the nodes in their recorded order.
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

// A recorded task, or a wait for a node of another branch. A branch consists of the nodes that one stream has recorded,
// in order. Branch 0 is that of the stream on which the capture began. The place of a node is its position in its
// branch, from 1 on.
struct GraphNode {
  size_t branch = 0;
  uint64_t number = 0;              // unique among the nodes of all captures; 0 for a wait
  Task task;                        // of a wait, only `kind` is valid
  size_t wait_branch = 0;           // of a wait: the branch of the node that it waits for
  uint64_t wait_place = 0;          // of a wait: the place of that node; 0 stands for the beginning of the launch
  std::vector<orOperand> operands;  // recorded even without a subscriber, because one may subscribe before a replay
  bool has_operands = false;        // true if the launch declared its operands, which may be none
};

// The content of a graph. Owns the state of its kernels, and the streams on which its branches are replayed. The handle
// and the launches in queues share ownership of it. The last owner must not hold the scheduler's mutex, because the
// destructor locks it, unless the graph has no branches.
struct GraphBody {
  GraphBody(ObjectTable& objects_, std::mutex& mutex_) : objects(objects_), mutex(mutex_) {}
  GraphBody(const GraphBody&) = delete;
  GraphBody& operator=(const GraphBody&) = delete;
  ~GraphBody();

  ObjectTable& objects;
  std::mutex& mutex;
  Device* device = nullptr;  // the device of branch 0
  std::vector<GraphNode> nodes;
  // The streams on which the branches are replayed. The first one is null, because branch 0 is replayed on the stream
  // of the launch.
  std::vector<Stream*> branches;
  // The last task of the newest launch, for which the next launch waits. Guarded by the scheduler's mutex.
  Stream* last_stream = nullptr;
  uint64_t last_ticket = 0;  // its sequence number in that stream
};

// The object behind a graph handle. Guarded by the scheduler's mutex.
struct Graph : HandleSlot {
  static constexpr uint32_t kHandleKind = 3;
  std::shared_ptr<GraphBody> body;
};

inline orGraph_t handle_of(const Graph& graph) {
  return reinterpret_cast<orGraph_t>(HandleTable<Graph>::handle(graph));
}

// The nodes of a capture that precede a place in it, as one count per branch: nodes 1 to clock[b] of branch b. This is
// a vector clock, as in distributed systems; one number does not suffice, because nodes of different branches have no
// common order.
using BranchClock = std::vector<uint64_t>;

// A capture in progress. Guarded by the scheduler's mutex.
struct Capture {
  uint64_t id = 0;
  orStreamCaptureMode mode = orStreamCaptureModeGlobal;
  std::thread::id thread;           // the thread that began it
  std::string invalidated_by;       // the reason why it was invalidated; empty while it is valid
  std::vector<Stream*> branches;    // the capturing streams
  std::vector<BranchClock> clocks;  // the clock at the end of each branch; [b][b] is the number of nodes in branch b
  std::shared_ptr<GraphBody> body;  // the graph so far
};

// The place in a capture at which a capturing stream recorded an event.
struct CapturedEvent {
  uint64_t capture = 0;  // id of the capture
  size_t branch = 0;
  BranchClock clock;  // the nodes for which the event stands
};

// Writes the nodes and their order to a Graphviz file. Throws Error(orErrorInvalidValue) if the file cannot be written.
void write_dot(const GraphBody& body, const char* path);

}  // namespace openreg::driver
