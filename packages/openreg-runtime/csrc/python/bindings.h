// SPDX-License-Identifier: BSD-3-Clause
// One function per group of bindings; _C.pyi documents what they bind.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <pybind11/pybind11.h>

#include "openreg/runtime/device.h"

namespace openreg::runtime {

// PyTorch's index has 8 bits; a number from Python must not wrap around into a valid one.
inline c10::DeviceIndex to_device_index(int64_t index) {
  check_device_index(index);
  return static_cast<c10::DeviceIndex>(index);
}

// The dictionary of one statistic, as torch.cuda.memory_stats_as_nested_dict() has it.
pybind11::dict stat_dict(const c10::CachingAllocator::Stat& stat);

void bind_device(pybind11::module_& module);
void bind_statistics(pybind11::module_& module);
void bind_stream(pybind11::module_& module);
void bind_memory(pybind11::module_& module);
void bind_memory_pool(pybind11::module_& module);
void bind_snapshot(pybind11::module_& module);
void bind_generator(pybind11::module_& module);
void bind_graph(pybind11::module_& module);
void bind_launch_entry(pybind11::module_& module);
void bind_profiler(pybind11::module_& module);
void bind_sharing(pybind11::module_& module);

}  // namespace openreg::runtime
