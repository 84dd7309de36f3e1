// SPDX-License-Identifier: BSD-3-Clause
// A stack per thread of the open operators and ranges. Kineto numbers the operators and the record_function() ranges
// that it records, and calls the profiler on their thread when one begins and ends (source:
// libkineto::IActivityProfilerSession::pushCorrelationId).
#pragma once

#include <cstdint>

namespace openreg::profiler {

// Kineto's numbers; 0: none.
struct CorrelationIds {
  int32_t innermost = 0;   // innermost open operator or range of the thread
  int32_t annotation = 0;  // innermost open record_function() range
};

// All functions below use a stack in thread-local memory, so they need no lock. The first call with another `recording`
// clears the calling thread's stack, because numbers of different recordings are unrelated.

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
