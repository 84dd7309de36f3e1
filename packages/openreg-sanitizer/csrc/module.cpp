// SPDX-License-Identifier: BSD-3-Clause
// The Python module openreg_sanitizer._C; src/openreg_sanitizer/_C.pyi describes its functions. Before its import,
// openreg_sanitizer/__init__.py checks that the build matches torch and the runtime.
#include <ATen/EmptyTensor.h>
#include <torch/csrc/utils/pybind.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "access.h"
#include "exit_status.h"
#include "finding.h"
#include "layout.h"
#include "sanitizer.h"
#include "sites.h"
#include "stacks.h"

namespace openreg::sanitizer {

namespace {

namespace py = pybind11;

std::atomic<bool>& report_is_pending() {
  static std::atomic<bool> pending{false};
  return pending;
}

// Runs on the main thread between two instructions of Python, which raises an exception of the function there.
int run_report(void* /*argument*/) {
  report_is_pending() = false;
  if (!Sanitizer::instance().is_active()) {
    return 0;
  }
  try {
    // Not by an import: it would find no __import__ while the main thread runs code without built-ins, such as that by
    // which collections.namedtuple makes a class.
    const auto modules = py::reinterpret_borrow<py::dict>(PyImport_GetModuleDict());
    modules["openreg_sanitizer._session"].attr("report_new")();
    return 0;
  } catch (py::error_already_set& error) {
    error.restore();
    return -1;
  }
}

const char* name_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::kRace:
      return "race";
    case FindingKind::kReuse:
      return "reuse";
    case FindingKind::kUseAfterFree:
      return "use-after-free";
    case FindingKind::kUninitialized:
      return "uninitialized";
    case FindingKind::kHostRead:
      return "host-read";
    case FindingKind::kHostWrite:
      return "host-write";
    case FindingKind::kGraphInput:
      return "graph-input";
    case FindingKind::kOutOfBounds:
      return "out-of-bounds";
    case FindingKind::kPoison:
      return "poison";
    case FindingKind::kFreedInUse:
      return "freed-in-use";
  }
  return "race";
}

const char* name_of(orTaskKind kind) {
  switch (kind) {
    case orTaskCopy:
      return "copy";
    case orTaskFill:
      return "fill";
    default:
      return "kernel";
  }
}

py::object text_or_none(const std::string* text) {
  return text == nullptr ? py::object(py::none()) : py::object(py::str(*text));
}

py::dict describe(const Life& life) {
  StackTable& stacks = StackTable::instance();
  py::dict result;
  result["begin"] = life.begin;
  result["end"] = life.end;
  result["device"] = life.device;
  result["stream"] = py::make_tuple(life.owner.device, life.owner.id);
  result["allocated"] = stacks.symbolize(life.allocated);
  result["freed"] = stacks.symbolize(life.freed);
  return result;
}

py::object describe(const Access& access, const StreamName& stream) {
  if (access.site == 0) {
    return py::none();
  }
  StackTable& stacks = StackTable::instance();
  const Site site = Sanitizer::instance().site(access.site);
  const TensorLayout layout = Sanitizer::instance().layout(access.layout);
  py::dict result;
  result["begin"] = access.begin;
  result["end"] = access.end;
  result["reads"] = access.reads;
  result["writes"] = access.writes;
  result["stream"] = site.on_host ? py::object(py::none()) : py::object(py::make_tuple(stream.device, stream.id));
  result["kind"] = site.on_host ? "host" : name_of(site.kind);
  result["operation"] = text_or_none(site.operation);
  result["node"] = text_or_none(site.node);
  result["stack"] = stacks.symbolize(site.stack);
  result["captured"] = stacks.symbolize(site.captured);
  result["forward"] = stacks.symbolize(site.forward);
  result["dtype"] = layout.dtype == c10::ScalarType::Undefined ? py::object(py::none()) : py::cast(layout.dtype);
  result["sizes"] = layout.sizes;
  result["strides"] = layout.strides;
  return result;
}

py::dict describe(const Finding& finding) {
  py::dict result;
  const Violation& violation = finding.violation;
  result["kind"] = name_of(violation.kind);
  result["first"] = describe(violation.first, finding.first_stream);
  result["first_life"] = describe(violation.first_life);
  result["second"] = describe(violation.second, finding.second_stream);
  result["second_life"] = describe(violation.second_life);
  result["count"] = finding.count;
  return result;
}

py::list findings(size_t begin) {
  std::vector<Finding> found;
  {
    const py::gil_scoped_release release;
    found = Sanitizer::instance().findings(begin);
  }
  py::list result;
  for (const Finding& finding : found) {
    result.append(describe(finding));
  }
  return result;
}

// Returns the bytes of a tensor of dtype uint8.
TensorBytes byte_tensor(LayoutTable& table, uintptr_t begin, std::vector<int64_t> sizes, std::vector<int64_t> strides) {
  const size_t size = at::detail::computeStorageNbytes(sizes, strides, /*itemsize=*/1);
  return {begin, begin + size, table.intern({c10::kByte, std::move(sizes), std::move(strides)})};
}

// Returns true if two tensors of bytes, each given by its address, sizes and strides, share a byte; for tests.
bool overlap(uintptr_t begin, std::vector<int64_t> sizes, std::vector<int64_t> strides, uintptr_t other_begin,
             std::vector<int64_t> other_sizes, std::vector<int64_t> other_strides) {
  LayoutTable table;
  return table.overlap(byte_tensor(table, begin, std::move(sizes), std::move(strides)),
                       byte_tensor(table, other_begin, std::move(other_sizes), std::move(other_strides)));
}

}  // namespace

void request_report() noexcept {
  if (!report_is_pending().exchange(true) && Py_AddPendingCall(&run_report, nullptr) != 0) {
    report_is_pending() = false;  // the interpreter's list of pending calls is full; the next finding tries again
  }
}

}  // namespace openreg::sanitizer

PYBIND11_MODULE(_C, module) {
  namespace py = pybind11;
  using openreg::sanitizer::Sanitizer;
  using WithoutGil = py::call_guard<py::gil_scoped_release>;
  module.doc() = "Native part of openreg_sanitizer.";
  module.def(
      "start",
      [](bool launches_block, bool is_poisoned) { Sanitizer::instance().start({launches_block, is_poisoned}); },
      py::kw_only(), py::arg("launches_block"), py::arg("is_poisoned"), WithoutGil());
  module.def("stop", [] { Sanitizer::instance().stop(); }, WithoutGil());
  module.def("settle", [] { Sanitizer::instance().settle(); }, WithoutGil());
  module.def("abandon", [] { Sanitizer::instance().abandon(); });
  module.def("is_active", [] { return Sanitizer::instance().is_active(); });
  module.def(
      "add_existing",
      [](uintptr_t address, size_t size, int device, int64_t stream, bool is_private) {
        Sanitizer::instance().add_existing(address, size, device, stream, is_private);
      },
      WithoutGil());
  module.def("renew", [] { Sanitizer::instance().renew(); }, WithoutGil());
  module.def("findings", &openreg::sanitizer::findings);
  module.def("finding_count", [] { return Sanitizer::instance().finding_count(); }, WithoutGil());
  module.def("counts", [] { return Sanitizer::instance().counts(); }, WithoutGil());
  module.def("register_exit_handler", [] { openreg::sanitizer::register_exit_handler(); });
  module.def("fail_at_exit", [] { openreg::sanitizer::fail_at_exit(); });
  module.def("overlap", &openreg::sanitizer::overlap);
  module.def("statistics", [] {
    py::dict result;
    result["accesses"] = Sanitizer::instance().shadow_size();
    result["stacks"] = openreg::sanitizer::StackTable::instance().size();
    return result;
  });
}
