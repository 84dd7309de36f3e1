// SPDX-License-Identifier: BSD-3-Clause
// One activity of a trace: an item with a begin and a duration, such as a task of the device or the call that launched
// it. It implements libkineto::ITraceActivity.
#pragma once

#include <libkineto.h>

#include <cstdint>
#include <string>

#include "activity_recorder.h"

namespace openreg::profiler {

// An activity with its attributes as plain members, which Trace sets. Only metadataJson() is computed from a TaskRecord
// when Kineto requests it. The type replaces Kineto's GenericTraceActivity, which contains strings and a hash table,
// because a profile of a million kernels has two million activities. Does not own the objects to which it points. They
// are valid as long as the Trace.
struct Activity final : libkineto::ITraceActivity {
  libkineto::ActivityType kind = libkineto::ActivityType::CONCURRENT_KERNEL;
  int32_t device = 0;    // device index; process id for an activity of the host
  int32_t resource = 0;  // number of the stream (orTaskInfo::queue); thread id for an activity of the host
  int64_t begin = 0;     // nanoseconds since 1970
  int64_t nanoseconds = 0;
  int64_t correlation = 0;
  uint32_t number = 0;  // number of the task in the recording, from 1 on; 0 for a range and for a mark
  uint32_t flow = 0;    // id of the arrow that begins or ends here, a flow in Chrome's traces; 0: no arrow
  bool is_flow_start = false;
  bool is_collective = false;
  const libkineto::ITraceActivity* operation = nullptr;  // operator or range that launched it; may be null
  const std::string* title = nullptr;                    // the name
  const std::string* engine = nullptr;                   // null without an engine
  // Null for a range, and for a mark, an activity without a duration at which an arrow between streams begins or ends.
  const TaskRecord* task = nullptr;

  int64_t deviceId() const override { return device; }
  int64_t resourceId() const override { return resource; }
  int32_t getThreadId() const override { return 0; }
  int64_t timestamp() const override { return begin; }
  int64_t duration() const override { return nanoseconds; }
  int64_t correlationId() const override { return correlation; }
  int flowType() const override { return flow == 0 ? 0 : static_cast<int>(libkineto::kLinkAsyncCpuGpu); }
  int64_t flowId() const override { return flow; }
  bool flowStart() const override { return is_flow_start; }
  libkineto::ActivityType type() const override { return kind; }
  const std::string name() const override { return *title; }
  const libkineto::ITraceActivity* linkedActivity() const override { return operation; }
  const libkineto::TraceSpan* traceSpan() const override { return nullptr; }
  void log(libkineto::ActivityLogger& logger) const override;
  // Returns the members of a JSON object, without braces. Its strings require no escaping.
  const std::string metadataJson() const override;
};

}  // namespace openreg::profiler
