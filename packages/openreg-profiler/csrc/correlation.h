// SPDX-License-Identifier: BSD-3-Clause
// Thread-local stacks of correlation ids, which link tasks with the operators that launched them. Kineto numbers the
// operators and the record_function() ranges that it records. When an operator or a range begins and ends, Kineto calls
// the profiler on its thread (source: libkineto::IActivityProfilerSession::pushCorrelationId).
#pragma once

#include <cstdint>

namespace openreg::profiler {

// The numbers that Kineto gave to an operator and a range; 0: none.
struct CorrelationIds {
  int32_t innermost = 0;   // innermost open operator or range of the thread
  int32_t annotation = 0;  // innermost open record_function() range of the thread
};

// The functions below use the calling thread's stack, so they need no lock. `recording` is ActivityRecorder::number().
// The first call with another one clears the stack, because the numbers of different recordings are unrelated.

// Pushes an operator. Throws std::bad_alloc if memory is lacking.
void push_operator_id(uint64_t recording, int32_t number);
// Pushes a record_function() range and returns the number of the range around it, or 0. Throws std::bad_alloc if memory
// is lacking.
int32_t push_annotation_id(uint64_t recording, int32_t number);
// Pops the innermost operator or range. Does nothing if the stack is empty, as for an operator that began before the
// profile.
void pop_id(uint64_t recording) noexcept;
// Returns the top of the stack, or zeros if it is empty.
CorrelationIds current_ids(uint64_t recording) noexcept;

}  // namespace openreg::profiler
