// SPDX-License-Identifier: BSD-3-Clause
// Converts one recording to the activities of a trace, and to Kineto's lists of devices and streams.
#pragma once

#include <libkineto.h>

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "activity.h"
#include "activity_recorder.h"
#include "clock.h"

namespace openreg::profiler {

// A map from the number of a record_function() range to that of the range around it; both are Kineto's.
using Annotations = std::unordered_map<int32_t, int32_t>;

// The activities of a stopped recording. Kineto's buffers own the object, because they contain pointers to its
// activities and names, which are valid until it is destroyed. Not thread-safe, because Kineto's loggers are not.
class Trace {
 public:
  using ActivityTypes = std::set<libkineto::ActivityType>;
  using FindOperation = libkineto::getLinkedActivityCallback;

  // `begin` and `end` are clock samples at the beginning and the end of the recording. `recorder` is stopped.
  Trace(std::shared_ptr<const ActivityRecorder> recorder, ClockSample begin, ClockSample end);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // Creates the activities of the types in `wanted`: first ranges, then tasks in the order of their launches. `around`
  // contains the nested ranges. `find` returns Kineto's activity of an operator or range by its number, or null. It may
  // be empty. Called once.
  void build(const ActivityTypes& wanted, const Annotations& around, const FindOperation& find);

  const std::deque<Activity>& activities() const { return activities_; }
  // Returns the indices of the devices that executed tasks.
  std::vector<int> devices() const;
  // Returns the streams that executed tasks, with their names, as Kineto's resources.
  std::vector<libkineto::ResourceInfo> streams() const;
  // Returns the number of tasks that were skipped because their device had failed. They have no activity.
  uint64_t skipped() const { return skipped_; }

 private:
  using Track = std::pair<int, uint32_t>;  // device index and number of a stream
  // In nanoseconds since 1970.
  struct TimeInterval {
    int64_t begin;
    int64_t end;
  };

  // Sets the smallest shift of all times that puts each launch inside its operator, or no shift if none does. The shift
  // is necessary because Kineto converts the clock for its operators by itself. The two conversions differ by a tenth
  // of a microsecond, which is as long as some operators.
  void align_with_operators(const FindOperation& find);
  // Convert a time of the host or of the device's clock to nanoseconds since 1970.
  int64_t time_of_host(uint64_t time) const { return clock_converter_(time) + shift_; }
  int64_t time_of_device(uint64_t time) const;
  bool is_shown(const TaskRecord& task) const { return task.is_done && !task.was_skipped; }
  // Collects the semaphore waits that an operator of c10d enqueued. They count as busy time, because messages of a
  // collective are in transit meanwhile.
  void find_collectives(const FindOperation& find);
  // Returns true if a task only waits, which is not busy time of the device.
  bool is_wait(const TaskRecord& task) const;
  libkineto::ActivityType type_of(const TaskRecord& task) const;
  // Adds a range on each stream for each record_function() range, from its first to its last task on that stream.
  void add_annotations(const Annotations& around, const FindOperation& find);
  // Adds a range on each stream for each launch of a graph.
  void add_graph_launches();
  void add_range(const Track& track, const TimeInterval& range, const std::string* name, int64_t correlation);
  // Adds the call of the host that launched the tasks from `first` to `last`: the tasks of a graph, or a single one.
  void add_launch(const TaskRecord& first, const TaskRecord& last, int64_t correlation, const FindOperation& find);
  void add_task(const TaskRecord& task, int64_t correlation, bool has_launch, const FindOperation& find);
  // Adds an arrow for each wait of a stream for an event of another stream. It begins at the last task before the event
  // record. An activity can have only one arrow, and that of a task comes from its launch. So these arrows begin and
  // end at marks, which are activities without a duration.
  void add_dependencies();
  void add_mark(const TaskRecord& at, uint32_t flow, bool is_start);
  const std::string* name_of(const TaskRecord& task);
  // Returns a string that is valid as long as the trace.
  const std::string* keep(std::string name);

  const std::shared_ptr<const ActivityRecorder> recorder_;
  const ClockConverter clock_converter_;
  const int64_t begin_;           // nanoseconds since 1970
  bool is_simulated_ = false;     // the device's clock is simulated time (orSubscribeTime)
  int64_t shift_ = 0;             // nanoseconds, from align_with_operators()
  uint64_t simulated_begin_ = 0;  // begin of the first task on the device's clock
  std::vector<std::string> engines_;
  std::deque<Activity> activities_;
  std::set<std::string> names_;
  std::map<Track, orStream_t> tracks_;                 // streams that executed tasks
  std::unordered_set<const TaskRecord*> collectives_;  // semaphore waits of collectives
  uint64_t skipped_ = 0;
};

}  // namespace openreg::profiler
