// SPDX-License-Identifier: BSD-3-Clause
// Bindings of the memory history and of snapshots, in the dictionary format that torch.cuda._memory_viz reads.
#include <torch/csrc/profiler/combined_traceback.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/pythoncapi_compat.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "allocator/memory_snapshot.h"
#include "python/bindings.h"

namespace py = pybind11;

namespace openreg::runtime {

namespace {

using c10::CachingDeviceAllocator::BlockInfo;
using c10::CachingDeviceAllocator::RecordContext;
using c10::CachingDeviceAllocator::SegmentInfo;
using c10::CachingDeviceAllocator::TraceEntry;
using Context = std::shared_ptr<c10::GatheredContext>;

// Returns true if this thread may use Python. A thread without the GIL must not acquire it while Python is being
// finalized, because that would end the thread.
bool python_can_be_asked() {
  return Py_IsInitialized() != 0 && (PyGILState_Check() != 0 || Py_IsFinalizing() == 0);
}

Context gather_python() {
  return torch::CapturedTraceback::gather(python_can_be_asked(), /*script=*/true, /*cpp=*/false);
}

Context gather_all() {
  return torch::CapturedTraceback::gather(python_can_be_asked(), /*script=*/true, /*cpp=*/true);
}

const char* action_name(TraceEntry::Action action) {
  switch (action) {
    case TraceEntry::ALLOC:
      return "alloc";
    case TraceEntry::FREE_REQUESTED:
      return "free_requested";
    case TraceEntry::FREE_COMPLETED:
      return "free_completed";
    case TraceEntry::SEGMENT_ALLOC:
      return "segment_alloc";
    case TraceEntry::SEGMENT_FREE:
      return "segment_free";
    case TraceEntry::SEGMENT_MAP:
      return "segment_map";
    case TraceEntry::SEGMENT_UNMAP:
      return "segment_unmap";
    case TraceEntry::SNAPSHOT:
      return "snapshot";
    case TraceEntry::OOM:
      return "oom";
  }
  return "unknown";
}

const char* block_state(const BlockInfo& block) {
  if (block.allocated) {
    return "active_allocated";
  }
  return block.active ? "active_awaiting_free" : "inactive";
}

// A converter of stacks to lists of frames. It converts all stacks of a snapshot at once, because they share most
// frames.
class Symbolizer {
 public:
  void add(const Context& context) {
    if (auto* stack = dynamic_cast<torch::CapturedTraceback*>(context.get())) {
      if (index_.try_emplace(stack, stacks_.size()).second) {
        stacks_.push_back(stack);
      }
    }
  }
  void run() {
    const torch::SymbolizedTracebacks symbolized = torch::symbolize(stacks_);
    std::vector<py::dict> frames;
    for (const torch::unwind::Frame& frame : symbolized.all_frames) {
      py::dict entry;
      entry["filename"] = frame.filename;
      entry["line"] = frame.lineno;
      entry["name"] = frame.funcname;
      frames.push_back(entry);
    }
    for (const std::vector<uint64_t>& stack : symbolized.tracebacks) {
      py::list entries;
      for (const uint64_t index : stack) {
        entries.append(frames.at(index));
      }
      frames_.push_back(entries);
    }
  }
  py::list frames(const Context& context) const {
    const auto found = index_.find(dynamic_cast<torch::CapturedTraceback*>(context.get()));
    return found == index_.end() ? py::list() : frames_[found->second];
  }

 private:
  std::unordered_map<torch::CapturedTraceback*, size_t> index_;
  std::vector<torch::CapturedTraceback*> stacks_;
  std::vector<py::list> frames_;
};

py::tuple pool_tuple(c10::MempoolId_t id) {
  return py::make_tuple(id.first, id.second);
}

intptr_t stream_number(void* stream) {
  return reinterpret_cast<intptr_t>(stream);
}

py::dict block_dict(const BlockInfo& block, size_t address, const Symbolizer& symbolizer) {
  py::dict result;
  result["address"] = address;
  result["size"] = block.size;
  result["requested_size"] = block.requested_size;
  result["state"] = block_state(block);
  result["frames"] = symbolizer.frames(block.context_when_allocated);
  return result;
}

py::dict segment_dict(const SegmentInfo& segment, const Symbolizer& symbolizer) {
  py::dict result;
  result["device"] = segment.device;
  result["address"] = segment.address;
  result["total_size"] = segment.total_size;
  result["allocated_size"] = segment.allocated_size;
  result["active_size"] = segment.active_size;
  result["requested_size"] = segment.requested_size;
  result["stream"] = stream_number(segment.stream);
  result["segment_type"] = segment.is_large ? "large" : "small";
  result["segment_pool_id"] = pool_tuple(segment.owner_private_pool_id);
  result["is_expandable"] = segment.is_expandable;
  result["frames"] = symbolizer.frames(segment.context_when_allocated);
  py::list blocks;
  size_t address = segment.address;
  for (const BlockInfo& block : segment.blocks) {
    blocks.append(block_dict(block, address, symbolizer));
    address += block.size;
  }
  result["blocks"] = blocks;
  return result;
}

py::dict trace_dict(const TraceEntry& entry, c10::time_t nanoseconds, const Symbolizer& symbolizer) {
  py::dict result;
  result["action"] = action_name(entry.action_);
  result[entry.action_ == TraceEntry::OOM ? "device_free" : "addr"] = entry.addr_;
  result["size"] = entry.size_;
  result["stream"] = stream_number(entry.stream_);
  result["pool_id"] = pool_tuple(entry.mempool_);
  result["time_us"] = nanoseconds / 1000;
  result["compile_context"] = entry.compile_context_;
  result["user_metadata"] = entry.user_metadata_;
  result["frames"] = symbolizer.frames(entry.context_);
  return result;
}

// Returns the converter from the clock of trace entries to the time of day. The first call makes it and must precede
// the recording, because it measures the difference between the two clocks.
c10::ApproximateClockToUnixTimeConverter& clock() {
  static c10::ApproximateClockToUnixTimeConverter converter;
  return converter;
}

// Returns the segments of all devices and one trace per device.
py::dict snapshot(c10::MempoolId_t id, bool include_traces) {
  std::vector<MemorySnapshot> snapshots;
  Symbolizer symbolizer;
  for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
    snapshots.push_back(memory_snapshot(index, id));
    if (!include_traces) {
      snapshots.back().trace.clear();
    }
    for (const SegmentInfo& segment : snapshots.back().segments) {
      symbolizer.add(segment.context_when_allocated);
      for (const BlockInfo& block : segment.blocks) {
        symbolizer.add(block.context_when_allocated);
      }
    }
    for (const TraceEntry& entry : snapshots.back().trace) {
      symbolizer.add(entry.context_);
    }
  }
  symbolizer.run();
  const auto to_nanoseconds = clock().makeConverter();
  py::list segments;
  py::list traces;
  for (const MemorySnapshot& part : snapshots) {
    for (const SegmentInfo& segment : part.segments) {
      segments.append(segment_dict(segment, symbolizer));
    }
    py::list trace;
    for (const TraceEntry& entry : part.trace) {
      trace.append(trace_dict(entry, to_nanoseconds(entry.time_.approx_t_), symbolizer));
    }
    traces.append(trace);
  }
  py::dict result;
  result["segments"] = segments;
  result["device_traces"] = traces;
  return result;
}

void start_history(int64_t index, bool trace, int context, bool native_stacks, size_t max_entries, bool clear,
                   const std::vector<std::string>& skip) {
  clock();
  HistoryOptions options;
  options.trace = trace;
  options.context = static_cast<RecordContext>(context);
  options.gather = native_stacks ? &gather_all : &gather_python;
  options.max_entries = max_entries;
  options.clear = clear;
  for (const std::string& action : skip) {
    options.skip.push_back(c10::CachingDeviceAllocator::parseTraceEntryAction(action));
  }
  record_memory_history(to_device_index(index), options);
}

}  // namespace

void bind_snapshot(py::module_& module) {
  module.def("_start_memory_history", &start_history, py::arg("device"), py::arg("trace"), py::arg("context"),
             py::arg("native_stacks"), py::arg("max_entries"), py::arg("clear"), py::arg("skip"));
  module.def(
      "_stop_memory_history", [](int64_t index) { stop_memory_history(to_device_index(index)); }, py::arg("device"));
  module.def("_memory_snapshot", &snapshot, py::arg("pool"), py::arg("include_traces"));
}

}  // namespace openreg::runtime
