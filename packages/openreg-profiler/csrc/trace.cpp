// SPDX-License-Identifier: BSD-3-Clause
#include "trace.h"

#include <ThreadUtil.h>
#include <output_base.h>

#include <algorithm>
#include <limits>

#include "trace_names.h"

namespace openreg::profiler {

namespace {

using libkineto::ActivityType;

// Correlation ids of this profiler begin above Kineto's own, which have 32 bits, because PyTorch looks up both in one
// table.
constexpr int64_t kFirstCorrelation = int64_t{1} << 32;

// trace.py recognizes marks by this name.
constexpr const char* kMark = "event";
constexpr uint64_t kMarkWidth = 2;  // nanoseconds; Kineto's traces show a mark of no length with this width

// Returns Kineto's activity of the operator or range that launched a task, or null.
const libkineto::ITraceActivity* operation_of(const TaskRecord& task, const Trace::FindOperation& find) {
  return find && task.ids.innermost != 0 ? find(task.ids.innermost) : nullptr;
}

// Returns the driver function that enqueues a task of this kind, the name of the launch in the trace.
const char* call_of(const TaskRecord& task) {
  if (task.graph_launch != 0) {
    return "orGraphLaunch";
  }
  switch (static_cast<orTaskKind>(task.kind)) {
    case orTaskCopy:
      return "orMemcpyAsync";
    case orTaskFill:
      return "orMemsetAsync";
    case orTaskHostFunction:
      return "orLaunchHostFunc";
    case orTaskDelay:
      return "orStreamDelay";
    case orTaskEventWait:
      return "orStreamWaitEvent";
    case orTaskSemaphoreWait:
      return "orStreamWaitSemaphore";
    case orTaskKernel:
    case orTaskEventRecord:
      break;
  }
  return "orLaunchKernel";
}

}  // namespace

Trace::Trace(std::shared_ptr<const ActivityRecorder> recorder, ClockSample begin, ClockSample end)
    : recorder_(std::move(recorder)), clock_converter_(begin, end), begin_(begin.unix), engines_(engine_names()) {}

void Trace::find_collectives(const FindOperation& find) {
  for (const TaskRecord& task : recorder_->tasks()) {
    if (task.kind == orTaskSemaphoreWait) {
      const auto* operation = operation_of(task, find);
      if (operation != nullptr && operation->name().find("c10d") != std::string::npos) {
        collectives_.insert(&task);
      }
    }
  }
}

bool Trace::is_wait(const TaskRecord& task) const {
  return task.kind == orTaskEventWait || (task.kind == orTaskSemaphoreWait && collectives_.count(&task) == 0);
}

ActivityType Trace::type_of(const TaskRecord& task) const {
  if (is_wait(task)) {
    // PyTorch counts the time of every other type, CUDA_SYNC included, as busy time of the device.
    return ActivityType::GPU_USER_ANNOTATION;
  }
  switch (static_cast<orTaskKind>(task.kind)) {
    case orTaskCopy:
      return ActivityType::GPU_MEMCPY;
    case orTaskFill:
      return ActivityType::GPU_MEMSET;
    default:
      // Collectives are kernels, too, as on other devices, because PyTorch treats Kineto's COLLECTIVE_COMM as an
      // activity of the host.
      return ActivityType::CONCURRENT_KERNEL;
  }
}

// Simulated time has a zero of its own, so the trace shows its first task at the beginning of the profile.
int64_t Trace::time_of_device(uint64_t time) const {
  return is_simulated_ ? begin_ + static_cast<int64_t>(time - simulated_begin_) : time_of_host(time);
}

void Trace::align_with_operators(const FindOperation& find) {
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();
  for (const TaskRecord& task : recorder_->tasks()) {
    const auto* operation = operation_of(task, find);
    if (operation != nullptr && operation->duration() > 0) {
      least = std::max(least, operation->timestamp() - clock_converter_(task.launched));
      most = std::min(most, operation->timestamp() + operation->duration() - clock_converter_(task.accepted));
    }
  }
  if (least <= most) {
    shift_ = std::clamp<int64_t>(0, least, most);
  }
}

void Trace::build(const ActivityTypes& wanted, const Annotations& around, const FindOperation& find) {
  simulated_begin_ = std::numeric_limits<uint64_t>::max();
  for (const TaskRecord& task : recorder_->tasks()) {
    skipped_ += task.was_skipped;
    if (is_shown(task)) {
      tracks_.try_emplace({task.device, task.queue}, task.stream);
      simulated_begin_ = std::min(simulated_begin_, task.begin);
      // A task that ends before its launch proves that the device's clock is simulated time.
      is_simulated_ = is_simulated_ || task.end < task.launched;
    }
  }
  align_with_operators(find);
  find_collectives(find);
  if (wanted.count(ActivityType::GPU_USER_ANNOTATION) != 0) {
    add_annotations(around, find);
    add_graph_launches();
    add_dependencies();
  }
  const bool has_launches = wanted.count(ActivityType::PRIVATEUSE1_RUNTIME) != 0;
  int64_t correlation = kFirstCorrelation;
  const auto& tasks = recorder_->tasks();
  for (auto task = tasks.begin(); task != tasks.end();) {
    // The tasks of a graph launch are consecutive, because one call submits them.
    auto last = task;
    auto next = std::next(task);
    while (next != tasks.end() && task->graph_launch != 0 && next->graph_launch == task->graph_launch) {
      last = next++;
    }
    bool starts_arrow = has_launches && !is_simulated_;
    if (has_launches) {
      add_launch(*task, *last, correlation + 1, find);
    }
    for (; task != next; ++task) {
      ++correlation;
      if (is_shown(*task) && wanted.count(type_of(*task)) != 0) {
        add_task(*task, correlation, starts_arrow, find);
        starts_arrow = false;
      }
    }
  }
}

void Trace::add_annotations(const Annotations& around, const FindOperation& find) {
  std::map<std::pair<Track, int32_t>, TimeInterval> ranges;
  for (const TaskRecord& task : recorder_->tasks()) {
    if (!is_shown(task) || is_wait(task)) {
      continue;
    }
    const Track track{task.device, task.queue};
    const TimeInterval own{time_of_device(task.begin), time_of_device(task.end)};
    for (int32_t number = task.ids.annotation; number != 0;) {
      TimeInterval& range = ranges.try_emplace({track, number}, own).first->second;
      range.begin = std::min(range.begin, own.begin);
      range.end = std::max(range.end, own.end);
      const auto outer = around.find(number);
      number = outer == around.end() ? 0 : outer->second;
    }
  }
  // Kineto's numbers grow with time, so an outer range comes before its inner ranges.
  for (const auto& [place, range] : ranges) {
    if (const auto* operation = find ? find(place.second) : nullptr) {
      add_range(place.first, range, keep(operation->name()), operation->correlationId());
    }
  }
}

void Trace::add_graph_launches() {
  std::map<std::pair<Track, uint64_t>, TimeInterval> ranges;
  for (const TaskRecord& task : recorder_->tasks()) {
    if (task.graph_launch == 0 || !is_shown(task)) {
      continue;
    }
    const TimeInterval own{time_of_device(task.begin), time_of_device(task.end)};
    TimeInterval& range = ranges.try_emplace({{task.device, task.queue}, task.graph_launch}, own).first->second;
    range.begin = std::min(range.begin, own.begin);
    range.end = std::max(range.end, own.end);
  }
  for (const auto& [place, range] : ranges) {
    add_range(place.first, range, keep("graph launch " + std::to_string(place.second)), 0);
  }
}

void Trace::add_range(const Track& track, const TimeInterval& range, const std::string* name, int64_t correlation) {
  Activity& activity = activities_.emplace_back();
  activity.kind = ActivityType::GPU_USER_ANNOTATION;
  activity.device = track.first;
  activity.resource = static_cast<int32_t>(track.second);
  activity.begin = range.begin;
  activity.nanoseconds = range.end - range.begin;
  activity.correlation = correlation;
  activity.title = name;
}

void Trace::add_launch(const TaskRecord& first, const TaskRecord& last, int64_t correlation,
                       const FindOperation& find) {
  Activity& activity = activities_.emplace_back();
  activity.kind = ActivityType::PRIVATEUSE1_RUNTIME;
  activity.device = libkineto::processId();
  activity.resource = first.thread;
  activity.begin = time_of_host(first.launched);
  activity.nanoseconds = time_of_host(last.accepted) - activity.begin;
  activity.correlation = correlation;
  activity.number = static_cast<uint32_t>(correlation - kFirstCorrelation);
  activity.flow = is_simulated_ ? 0 : activity.number;  // an arrow between unrelated clocks has no meaning
  activity.is_flow_start = true;
  activity.operation = operation_of(first, find);
  activity.title = keep(call_of(first));
  activity.task = &first;
}

void Trace::add_task(const TaskRecord& task, int64_t correlation, bool has_launch, const FindOperation& find) {
  Activity& activity = activities_.emplace_back();
  activity.kind = type_of(task);
  activity.device = task.device;
  activity.resource = static_cast<int32_t>(task.queue);
  activity.begin = time_of_device(task.begin);
  activity.nanoseconds = time_of_device(task.end) - activity.begin;
  activity.correlation = correlation;
  activity.number = static_cast<uint32_t>(correlation - kFirstCorrelation);
  activity.flow = has_launch ? activity.number : 0;
  activity.title = name_of(task);
  activity.task = &task;
  if (task.engine >= 0) {
    const auto index = static_cast<size_t>(task.engine);  // a simulated chip may have more engines
    activity.engine = index < engines_.size() ? &engines_[index] : keep("engine " + std::to_string(index));
  }
  if (is_wait(task)) {
    // Kineto's traces draw activities of this type wider by a nanosecond on both sides, and show their correlation id
    // as that of an operator. A wait must not add to an operator's time, so only the arrow connects the two.
    activity.correlation = 0;
    activity.begin += 1;
    activity.nanoseconds = std::max<int64_t>(activity.nanoseconds - 2, 0);
  } else {
    activity.operation = operation_of(task, find);
  }
  if (collectives_.count(&task) != 0) {
    activity.is_collective = true;
    activity.title = keep(activity.operation->name());
  }
}

void Trace::add_dependencies() {
  std::unordered_map<uint32_t, std::vector<const TaskRecord*>> queues;  // sorted by ticket
  for (const TaskRecord& task : recorder_->tasks()) {
    if (is_shown(task)) {
      queues[task.queue].push_back(&task);
    }
  }
  auto flow = static_cast<uint32_t>(recorder_->tasks().size());
  for (const TaskRecord& task : recorder_->tasks()) {
    const auto waited = queues.find(task.waited_queue);
    if (task.kind != orTaskEventWait || !is_shown(task) || waited == queues.end()) {
      continue;
    }
    const auto after =
        std::upper_bound(waited->second.begin(), waited->second.end(), task.waited_ticket,
                         [](uint64_t ticket, const TaskRecord* other) { return ticket < other->ticket; });
    const TaskRecord* const source = after == waited->second.begin() ? nullptr : *std::prev(after);
    if (source != nullptr && (is_wait(*source) || source->end - source->begin >= kMarkWidth)) {
      add_mark(*source, ++flow, true);
      add_mark(task, flow, false);
    }
  }
}

void Trace::add_mark(const TaskRecord& at, uint32_t flow, bool is_start) {
  Activity& activity = activities_.emplace_back();
  activity.kind = ActivityType::GPU_USER_ANNOTATION;
  activity.device = at.device;
  activity.resource = static_cast<int32_t>(at.queue);
  // The mark is at the end of its task and inside it after Kineto's traces widen both. A mark grows by a nanosecond on
  // both sides, as a wait does in add_task().
  activity.begin = time_of_device(std::max(at.begin + kMarkWidth, at.end)) - 1;
  activity.flow = flow;
  activity.is_flow_start = is_start;
  activity.title = keep(kMark);
}

const std::string* Trace::name_of(const TaskRecord& task) {
  switch (static_cast<orTaskKind>(task.kind)) {
    case orTaskCopy:
    case orTaskFill:
      return keep(transfer_name(task, recorder_->freed()));
    case orTaskHostFunction:
      return keep("host function");
    case orTaskDelay:
      return keep("pause");
    case orTaskEventWait: {
      const auto waited = std::find_if(tracks_.begin(), tracks_.end(),
                                       [&](const auto& track) { return track.first.second == task.waited_queue; });
      if (waited == tracks_.end()) {
        return keep("wait for stream " + std::to_string(task.waited_queue));
      }
      const int device = waited->first.first;
      std::string name = "wait for " + stream_name(waited->second, device, waited->first.second);
      return keep(device == task.device ? name : name + " of openreg:" + std::to_string(device));
    }
    case orTaskSemaphoreWait:
      return keep("wait for a semaphore");
    case orTaskKernel:
    case orTaskEventRecord:
      break;
  }
  return task.name;
}

const std::string* Trace::keep(std::string name) {
  return &*names_.insert(std::move(name)).first;
}

std::vector<int> Trace::devices() const {
  std::vector<int> result;
  for (const auto& [track, stream] : tracks_) {
    if (result.empty() || result.back() != track.first) {
      result.push_back(track.first);
    }
  }
  return result;
}

std::vector<libkineto::ResourceInfo> Trace::streams() const {
  std::vector<libkineto::ResourceInfo> result;
  for (const auto& [track, stream] : tracks_) {
    result.push_back({static_cast<int64_t>(track.second), static_cast<int64_t>(track.second), track.first,
                      stream_name(stream, track.first, track.second)});
  }
  return result;
}

}  // namespace openreg::profiler
