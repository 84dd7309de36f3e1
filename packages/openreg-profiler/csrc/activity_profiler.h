// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace openreg::profiler {

// Tells PyTorch who records what openreg devices do, whenever ProfilerActivity.PrivateUse1 is asked for (source:
// torch::profiler::impl::PrivateUse1ProfilerRegistry). Called once, at import. Throws c10::Error where PyTorch has a
// profiler for that activity already, since it keeps the first.
void register_activity_profiler();

}  // namespace openreg::profiler
