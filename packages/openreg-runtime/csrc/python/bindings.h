// SPDX-License-Identifier: BSD-3-Clause
// The functions that add bindings to the module openreg_runtime._C: one function for each group of bindings, such as
// those of streams. _C.pyi has the signatures of the bindings.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <pybind11/pybind11.h>

#include "openreg/runtime/device.h"

namespace openreg::runtime {

// Converts a device index from Python. c10::DeviceIndex has 8 bits, and a larger number could wrap around to a valid
// index, so the range is checked first. Throws c10::Error if the index is out of range.
inline c10::DeviceIndex to_device_index(int64_t index) {
  check_device_index(index);
  return static_cast<c10::DeviceIndex>(index);
}

// Returns the dictionary of one statistic, in the format of torch.cuda.memory_stats_as_nested_dict().
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
