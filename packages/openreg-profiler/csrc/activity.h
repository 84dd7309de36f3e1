// SPDX-License-Identifier: BSD-3-Clause
// One entry of a trace (source: libkineto::ITraceActivity).
#pragma once

#include <libkineto.h>

#include <cstdint>
#include <string>

#include "recorder.h"

namespace openreg::profiler {

// What Kineto and PyTorch ask of an entry, answered from the task behind it. A GenericTraceActivity of Kineto's own
// holds strings and a hash table; a profile of a million kernels has two million entries. All that it points to has to
// live as long as the trace.
struct Activity final : libkineto::ITraceActivity {
  libkineto::ActivityType kind = libkineto::ActivityType::CONCURRENT_KERNEL;
  int32_t device = 0;    // of the device its index, of the host the process
  int32_t resource = 0;  // of the device the queue of a stream, of the host the thread
  int64_t begin = 0;     // nanoseconds since 1970
  int64_t nanoseconds = 0;
  int64_t correlation = 0;
  uint32_t number = 0;  // of the task among those of the recording
  uint32_t flow = 0;    // 0: no arrow
  bool is_flow_start = false;
  bool is_collective = false;
  const libkineto::ITraceActivity* operation = nullptr;  // the operator that launched it, where it was recorded
  const std::string* title = nullptr;
  const std::string* engine = nullptr;  // null: none was needed
  const Task* task = nullptr;           // null: a range of several tasks

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
  // The members of a JSON object, without braces; strings in it need no escape.
  const std::string metadataJson() const override;
};

}  // namespace openreg::profiler
