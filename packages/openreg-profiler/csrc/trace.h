// SPDX-License-Identifier: BSD-3-Clause
// From notes to a trace: the entries that one recording gives, and what else Kineto asks about them.
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
#include "clock.h"
#include "recorder.h"

namespace openreg::profiler {

// Which ranges of record_function() lie in which, by Kineto's numbers: inner to outer.
using Annotations = std::unordered_map<int32_t, int32_t>;

// Built once from a stopped recorder, and kept alive by the trace that shows it: pointers to its activities and names
// stay valid as long as it. Not thread-safe, as Kineto's loggers are not.
class Trace {
 public:
  using ActivityTypes = std::set<libkineto::ActivityType>;
  using FindOperation = libkineto::getLinkedActivityCallback;

  // `begin` and `end` are two moments at the beginning and the end of the recording.
  Trace(std::shared_ptr<const Recorder> recorder, Moment begin, Moment end);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // Makes the entries of the wanted types: first ranges, then tasks in the order of their launches. `find` gives
  // Kineto's entry of an operator or range by its number, or null.
  void build(const ActivityTypes& wanted, const Annotations& around, const FindOperation& find);

  const std::deque<Activity>& activities() const { return activities_; }
  // The devices with entries, and the streams with their names as Kineto's resources.
  std::vector<int> devices() const;
  std::vector<libkineto::ResourceInfo> streams() const;
  // Tasks that a failed device did not run, and that are in no entry.
  uint64_t skipped() const { return skipped_; }

 private:
  using Track = std::pair<int, uint32_t>;  // device and queue
  struct Range {
    int64_t begin;
    int64_t end;
  };

  // Two conversions of the same clock differ by a tenth of a microsecond, which is as long as some operators are.
  // Shifts all times by as little as puts each launch inside of its operator, if that is possible.
  void align_with_operators(const FindOperation& find);
  int64_t time_of_host(uint64_t time) const { return unix_time_(time) + shift_; }
  int64_t time_of_device(uint64_t time) const;
  bool is_shown(const Task& task) const { return task.is_done && !task.was_skipped; }
  // The wait of a collective is its work: messages are under way. What enqueued it says so.
  void find_collectives(const FindOperation& find);
  bool is_wait(const Task& task) const;
  libkineto::ActivityType type_of(const Task& task) const;
  void add_annotations(const Annotations& around, const FindOperation& find);
  void add_graph_launches();
  void add_range(const Track& track, const Range& range, const std::string* name, int64_t correlation);
  // The host's call; `entries` are the tasks of one launch, a graph's or a single one.
  void add_launch(const Task& first, const Task& last, int64_t correlation, const FindOperation& find);
  void add_task(const Task& task, int64_t correlation, bool has_launch, const FindOperation& find);
  // Arrows from where an event was recorded to the stream that waits for it. An entry has room for one arrow, that
  // from its launch, so these have marks of no length at their ends.
  void add_dependencies();
  void add_mark(const Task& at, uint32_t flow, bool is_start);
  const std::string* name_of(const Task& task);
  const std::string* keep(std::string name);

  const std::shared_ptr<const Recorder> recorder_;
  const UnixTime unix_time_;
  const int64_t begin_;
  bool is_virtual_ = false;  // with OPENREG_SCHEDULE_SEED
  int64_t shift_ = 0;
  uint64_t virtual_begin_ = 0;
  std::vector<std::string> engines_;
  std::deque<Activity> activities_;
  std::set<std::string> names_;
  std::map<Track, orStream_t> tracks_;
  std::unordered_set<const Task*> collectives_;
  uint64_t skipped_ = 0;
};

}  // namespace openreg::profiler
