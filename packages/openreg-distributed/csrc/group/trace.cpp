// SPDX-License-Identifier: BSD-3-Clause
#include "group/trace.h"

#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/TraceUtils.h>
#include <torch/csrc/profiler/combined_traceback.h>
#include <torch/csrc/distributed/c10d/FlightRecorder.hpp>
#include <torch/csrc/distributed/c10d/Utils.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace openreg::distributed {

namespace {

using GenericDict = c10::Dict<c10::IValue, c10::IValue>;
using GenericList = c10::List<c10::IValue>;

// A process group in the dump, with the numbers of its last collectives that were enqueued, started and completed.
struct GroupStatus {
  std::shared_ptr<const FlightGroup> group;
  uint64_t enqueued = 0;
  uint64_t started = 0;
  uint64_t ended = 0;
};

GenericList sizes_of(const std::vector<std::vector<int64_t>>& all) {
  GenericList list = c10d::new_list();
  for (const std::vector<int64_t>& sizes : all) {
    GenericList one = c10d::new_list();
    for (const int64_t size : sizes) {
      one.push_back(size);
    }
    list.push_back(one);
  }
  return list;
}

// Returns a time, or None for 0, which stands for a time that is not known.
c10::IValue time_of(int64_t nanoseconds) {
  return nanoseconds == 0 ? c10::IValue() : c10::IValue(nanoseconds);
}

GenericDict describe(const FlightRecord& flight) {
  const int64_t started = flight.started;
  const int64_t ended = flight.ended;
  const bool completed = ended != 0 && flight.succeeded;
  GenericDict dict = c10d::new_dict();
  dict.insert(c10d::record_id_key, static_cast<int64_t>(flight.id));
  dict.insert(c10d::pg_id_key, flight.group->id);
  dict.insert(c10d::pg_name_key, std::make_tuple(flight.group->name, flight.group->title));
  dict.insert(c10d::collective_seq_id_key, static_cast<int64_t>(flight.collectives));
  dict.insert(c10d::p2p_seq_id_key, static_cast<int64_t>(flight.messages));
  dict.insert(c10d::op_id_key, static_cast<int64_t>(flight.number));
  // The name of a receive ends with the source, or -1 if that is not known yet.
  const bool needs_source = !flight.name.empty() && flight.name.back() == '-';
  dict.insert(c10d::profiling_name_key, needs_source ? flight.name + std::to_string(flight.source) : flight.name);
  dict.insert(c10d::time_created_key, flight.created);
  if (completed && started != 0) {
    dict.insert(c10d::duration_key, static_cast<double>(ended - started) / 1e6);
  }
  dict.insert(c10d::input_sizes_key, sizes_of(flight.inputs));
  dict.insert(c10d::input_dtypes_key, std::vector<std::string>(flight.inputs.size(), flight.dtype));
  dict.insert(c10d::output_sizes_key, sizes_of(flight.outputs));
  dict.insert(c10d::output_dtypes_key, std::vector<std::string>(flight.outputs.size(), flight.dtype));
  dict.insert(c10d::state_key, completed      ? c10d::completed_state
                               : started != 0 ? c10d::started_state
                                              : c10d::scheduled_state);
  dict.insert(c10d::time_discovered_started_key, time_of(started));
  dict.insert(c10d::time_discovered_completed_key, completed ? time_of(ended) : c10::IValue());
  dict.insert(c10d::retired_key, ended != 0);
  dict.insert(c10d::timeout_key, static_cast<int64_t>(flight.timeout.count()));
  dict.insert(c10d::is_p2p_key, flight.is_message);
  dict.insert(c10d::thread_name_key, flight.thread);
  return dict;
}

// Adds the Python frames of the calls to `entries`, which correspond to `records`.
void add_stacks(const std::vector<std::shared_ptr<const FlightRecord>>& records, std::vector<GenericDict>& entries) {
  std::vector<torch::CapturedTraceback*> stacks;
  std::vector<size_t> with_stack;
  for (size_t i = 0; i < records.size(); ++i) {
    if (records[i]->stack != nullptr) {
      stacks.push_back(static_cast<torch::CapturedTraceback*>(records[i]->stack.get()));
      with_stack.push_back(i);
    }
  }
  const torch::SymbolizedTracebacks symbols = torch::symbolize(stacks);
  for (size_t i = 0; i < with_stack.size(); ++i) {
    GenericList frames = c10d::new_list();
    for (const uint64_t index : symbols.tracebacks[i]) {
      const torch::unwind::Frame& frame = symbols.all_frames[index];
      GenericDict dict = c10d::new_dict();
      dict.insert(c10d::name_key, frame.funcname);
      dict.insert(c10d::filename_key, frame.filename);
      dict.insert(c10d::line_key, static_cast<int64_t>(frame.lineno));
      frames.push_back(dict);
    }
    entries[with_stack[i]].insert(c10d::frames_key, frames);
  }
}

}  // namespace

FlightRecorder& flight_recorder() {
  // Never destroyed, because calls may be outstanding until the process ends.
  static FlightRecorder& only = *new FlightRecorder(static_cast<size_t>(
      std::max(0, c10d::getCvarInt({"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}, 2000))));
  return only;
}

std::shared_ptr<void> calling_stack() {
  return flight_recorder().capacity() == 0 ? nullptr : torch::CapturedTraceback::gather(true, false, false);
}

std::string dump_trace(bool with_stacks, bool only_active) {
  std::vector<std::shared_ptr<const FlightRecord>> records = flight_recorder().records();
  std::map<int64_t, GroupStatus> groups;
  for (const auto& flight : records) {
    GroupStatus& status = groups[flight->group->id];
    status.group = flight->group;
    if (!flight->is_message) {
      status.enqueued = std::max(status.enqueued, flight->collectives);
      status.started = std::max(status.started, flight->started == 0 ? 0 : flight->collectives);
      status.ended = std::max(status.ended, flight->succeeded ? flight->collectives : 0);
    }
  }
  if (only_active) {
    std::erase_if(records, [](const auto& flight) { return flight->ended != 0; });
  }
  std::vector<GenericDict> entries;
  for (const auto& flight : records) {
    entries.push_back(describe(*flight));
  }
  if (with_stacks) {
    add_stacks(records, entries);
  }

  GenericDict config = c10d::new_dict();
  GenericDict statuses = c10d::new_dict();
  for (const auto& [id, status] : groups) {
    GenericDict group = c10d::new_dict();
    group.insert("name", status.group->name);
    group.insert("desc", status.group->title);
    group.insert("ranks", status.group->ranks);
    config.insert(status.group->name, group);
    GenericDict numbers = c10d::new_dict();
    numbers.insert("last_enqueued_collective", static_cast<int64_t>(status.enqueued));
    numbers.insert("last_started_collective", static_cast<int64_t>(status.started));
    numbers.insert("last_completed_collective", static_cast<int64_t>(status.ended));
    statuses.insert(std::to_string(id), numbers);
  }
  GenericList list = c10d::new_list();
  for (const GenericDict& entry : entries) {
    list.push_back(entry);
  }
  GenericDict result = c10d::new_dict();
  result.insert(c10d::version_key, c10d::version_val);
  result.insert(c10d::pg_config_key, config);
  result.insert(c10d::pg_status_key, statuses);
  result.insert(c10d::entries_key, list);
  return c10d::pickle_str(result);
}

void write_trace(int global_rank) noexcept {
  if (std::getenv("TORCH_FR_DUMP_TEMP_FILE") == nullptr || flight_recorder().capacity() == 0) {
    return;
  }
  // c10d's writer has no lock, and threads of several groups may be here. The mutex is never destroyed, because threads
  // may outlive the destructors of statics.
  static auto* const mutex = new std::mutex;
  try {
    const std::lock_guard<std::mutex> lock(*mutex);
    c10d::DebugInfoWriter::getWriter(global_rank).write(dump_trace(false, false));
  } catch (const std::exception& error) {
    LOG(WARNING) << "occl: the flight recorder could not be written: " << error.what();
  }
}

}  // namespace openreg::distributed
