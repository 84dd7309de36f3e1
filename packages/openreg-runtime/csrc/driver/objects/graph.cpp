// SPDX-License-Identifier: BSD-3-Clause
#include "objects/graph.h"

#include <fstream>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/lock.h"
#include "objects/device.h"
#include "objects/object_table.h"

namespace openreg::driver {

namespace {

std::string label(const GraphNode& node) {
  switch (node.task.kind) {
    case Task::Kind::kKernel:
      return node.task.kernel.name;
    case Task::Kind::kHostFunction:
      return "host function";
    case Task::Kind::kCopy:
      return join("copy of ", node.task.copy.size, " bytes");
    case Task::Kind::kFill:
      return join("fill of ", node.task.fill.size, " bytes");
    case Task::Kind::kDelay:
      return join("delay of ", node.task.delay, " ns");
    case Task::Kind::kWait:
    case Task::Kind::kSemaphoreWait:
    case Task::Kind::kTimestamp:
      break;
  }
  return "wait";
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
    }
    result += c;
  }
  return result + "\"";
}

}  // namespace

GraphBody::~GraphBody() {
  for (const GraphNode& node : nodes) {
    if (node.task.kind == Task::Kind::kKernel && node.task.kernel.release != nullptr) {
      node.task.kernel.release(node.task.kernel.state);
    }
  }
  if (branches.empty()) {
    return;  // a capture that could not begin is destroyed while the caller holds the mutex
  }
  const Lock lock = acquire(mutex);
  for (Stream* branch : branches) {
    if (branch != nullptr) {
      objects.destroy_stream(*branch);
    }
  }
}

void write_dot(const GraphBody& body, const char* path) {
  std::ofstream file(path);
  file << "digraph capture {\n  node [shape=box];\n";
  std::map<std::pair<size_t, uint64_t>, size_t> at;  // (branch, place) -> node
  std::vector<uint64_t> places(body.branches.size());
  for (size_t i = 0; i < body.nodes.size(); ++i) {
    const GraphNode& node = body.nodes[i];
    const uint64_t place = ++places[node.branch];
    at[{node.branch, place}] = i;
    file << "  n" << i << " [label=" << quoted(join(label(node), "\nstream ", node.branch)) << "];\n";
    if (const auto before = at.find({node.branch, place - 1}); before != at.end()) {
      file << "  n" << before->second << " -> n" << i << ";\n";
    }
    if (node.task.kind == Task::Kind::kWait) {
      if (const auto waited = at.find({node.wait_branch, node.wait_place}); waited != at.end()) {
        file << "  n" << waited->second << " -> n" << i << " [style=dashed];\n";
      }
    }
  }
  file << "}\n";
  file.close();
  OPENREG_DRIVER_CHECK(!file.fail(), orErrorInvalidValue, "the file '", path,
                       "' cannot be written; give a path in an existing folder that may be written to");
}

}  // namespace openreg::driver
