// SPDX-License-Identifier: BSD-3-Clause
// One function per group of bindings; _C.pyi documents what they bind.
#pragma once

#include <pybind11/pybind11.h>

namespace openreg::runtime {

void bind_device(pybind11::module_& module);
void bind_memory(pybind11::module_& module);
void bind_generator(pybind11::module_& module);

}  // namespace openreg::runtime
