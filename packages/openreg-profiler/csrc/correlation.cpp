// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: a vendor's driver keeps such a stack itself, and its records carry the number on top of it.
#include "correlation.h"

#include <vector>

namespace openreg::profiler {

namespace {

struct Stack {
  uint64_t recording = 0;
  std::vector<Origin> origins;
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

void enter_operator(uint64_t recording, int32_t number) {
  auto& origins = stack_of(recording).origins;
  origins.push_back({number, origins.empty() ? 0 : origins.back().annotation});
}

int32_t enter_annotation(uint64_t recording, int32_t number) {
  auto& origins = stack_of(recording).origins;
  const int32_t around = origins.empty() ? 0 : origins.back().annotation;
  origins.push_back({number, number});
  return around;
}

void leave(uint64_t recording) noexcept {
  auto& origins = stack_of(recording).origins;
  if (!origins.empty()) {
    origins.pop_back();
  }
}

Origin current_origin(uint64_t recording) noexcept {
  const auto& origins = stack_of(recording).origins;
  return origins.empty() ? Origin{} : origins.back();
}

}  // namespace openreg::profiler
