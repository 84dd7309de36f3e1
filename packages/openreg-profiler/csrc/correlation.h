// SPDX-License-Identifier: BSD-3-Clause
// Which operator a thread is in. Kineto numbers the operators and the ranges of record_function() that it records, and
// says on the thread when one begins and ends (source: libkineto::IActivityProfilerSession::pushCorrelationId).
#pragma once

#include <cstdint>

namespace openreg::profiler {

// Kineto's numbers; 0 stands for none.
struct Origin {
  int32_t innermost = 0;   // the operator or range that began last on this thread, and has not ended
  int32_t annotation = 0;  // the innermost range of record_function()
};

// The stack of the calling thread. Numbers of an earlier recording are forgotten with the first call for a later one.
// Memory of these is a thread's own, and goes with it. Only the two that enter may throw, std::bad_alloc.
void enter_operator(uint64_t recording, int32_t number);
// Returns the range around it, 0 for none.
int32_t enter_annotation(uint64_t recording, int32_t number);
// Ends what began last; nothing where nothing did, as for an operator that was running when the profile began.
void leave(uint64_t recording) noexcept;
Origin current_origin(uint64_t recording) noexcept;

}  // namespace openreg::profiler
