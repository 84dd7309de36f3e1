// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the driver of a vendor has such a stack itself, and writes the number on top of it into its records.
#include "correlation.h"

#include <vector>

namespace openreg::profiler {

namespace {

// The open operators and ranges of one thread in one recording, the innermost last.
struct CorrelationStack {
  uint64_t recording = 0;
  std::vector<CorrelationIds> origins;
};

CorrelationStack& stack_of(uint64_t recording) noexcept {
  thread_local CorrelationStack stack;
  if (stack.recording != recording) {
    stack.recording = recording;
    stack.origins.clear();
  }
  return stack;
}

}  // namespace

void push_operator_id(uint64_t recording, int32_t number) {
  auto& origins = stack_of(recording).origins;
  origins.push_back({number, origins.empty() ? 0 : origins.back().annotation});
}

int32_t push_annotation_id(uint64_t recording, int32_t number) {
  auto& origins = stack_of(recording).origins;
  const int32_t around = origins.empty() ? 0 : origins.back().annotation;
  origins.push_back({number, number});
  return around;
}

void pop_id(uint64_t recording) noexcept {
  auto& origins = stack_of(recording).origins;
  if (!origins.empty()) {
    origins.pop_back();
  }
}

CorrelationIds current_ids(uint64_t recording) noexcept {
  const auto& origins = stack_of(recording).origins;
  return origins.empty() ? CorrelationIds{} : origins.back();
}

}  // namespace openreg::profiler
