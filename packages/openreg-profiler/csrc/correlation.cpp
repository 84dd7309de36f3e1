// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: a vendor's driver contains such a stack itself, and its records contain the number on top of it.
#include "correlation.h"

#include <vector>

namespace openreg::profiler {

namespace {

struct Stack {
  uint64_t recording = 0;
  std::vector<CorrelationIds> origins;
};

Stack& stack_of(uint64_t recording) noexcept {
  thread_local Stack stack;
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
