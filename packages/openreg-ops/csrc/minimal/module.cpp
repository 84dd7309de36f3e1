// SPDX-License-Identifier: BSD-3-Clause
// The module openreg_ops._minimal: loading it registers the minimal set and the fallback; it exports the fallback
// statistics.
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "fallback/fallback.h"
#include "fallback/override.h"
#include "fallback/statistics.h"
#include "minimal/selection.h"
#include "openreg/runtime/fallback.h"

namespace py = pybind11;

namespace openreg::ops {

namespace {

py::dict fallback_counts() {
  py::dict result;
  for (const auto& [name, count] : FallbackStatistics::instance().counts()) {
    result[py::str(name)] = py::make_tuple(count.calls, count.bytes, count.seconds);
  }
  return result;
}

}  // namespace

PYBIND11_MODULE(_minimal, module) {
  // Wrong settings and a broken installation become the import's error, without a C++ stack.
  try {
    minimal::check_settings();
    FallbackStatistics::instance();  // throws for an invalid OPENREG_FALLBACK
  } catch (const c10::Error& error) {
    throw py::import_error(error.what_without_backtrace());
  }
  module.doc() =
      "Native part of openreg_ops: the minimal set, the fallback, and the record of operators that fall back.";
  runtime::set_fallback_handler(&run_fallback);
  module.def("_is_alone", &minimal::is_minimal_only);
  module.def("_fallback_counts", &fallback_counts);
  module.def("_reset_fallback_counts", [] { FallbackStatistics::instance().reset(); });
  py::class_<FallbackOverride>(module, "_FallbackOverride")
      .def(py::init<const std::vector<std::string>&>(), py::arg("operators"))
      .def("release", &FallbackOverride::release);
  module.def(
      "_parse_fallback_mode", [](const std::string& text) { return static_cast<int>(parse_fallback_mode(text)); },
      py::arg("text"));
  module.def(
      "_exchange_fallback_mode",
      [](int mode) {
        return static_cast<int>(FallbackStatistics::instance().exchange_mode(static_cast<FallbackMode>(mode)));
      },
      py::arg("mode"));
}

}  // namespace openreg::ops
