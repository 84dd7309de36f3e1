// SPDX-License-Identifier: BSD-3-Clause
// The module vendor_plugin._native: what a plug-in does first, and one function that uses the runtime.
#include <c10/util/Exception.h>
#include <openreg/runtime/device.h>
#include <openreg/runtime/version.h>
#include <pybind11/pybind11.h>

PYBIND11_MODULE(_native, module) {
  try {
    openreg::runtime::require_abi_version("vendor-plugin", openreg::runtime::kAbiVersion);
  } catch (const c10::Error& error) {
    throw pybind11::import_error(error.what_without_backtrace());
  }
  module.def("device_count", &openreg::runtime::device_count);
}
