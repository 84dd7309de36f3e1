// SPDX-License-Identifier: BSD-3-Clause
// The registration of the device's profiler with PyTorch.
#pragma once

namespace openreg::profiler {

// Registers the profiler that records openreg devices when a profile requests ProfilerActivity.PrivateUse1 (source:
// torch::profiler::impl::PrivateUse1ProfilerRegistry). Called once, at import. Throws c10::Error if PyTorch already has
// a profiler for that activity, because PyTorch keeps the first one.
void register_activity_profiler();

}  // namespace openreg::profiler
