// SPDX-License-Identifier: BSD-3-Clause
// The module openreg_runtime._C: bindings for torch.openreg beyond PyTorch's own device-agnostic ones.
#include <torch/csrc/utils/pybind.h>

#include <atomic>
#include <thread>

#include "openreg/runtime/gil.h"
#include "python/bindings.h"

namespace {

// Releases the GIL before a host thread blocks on the device. Returns null if the thread does not hold it, or if Python
// is not initialized.
void* release_gil() {
  return Py_IsInitialized() != 0 && PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr;
}

void acquire_gil(void* token) {
  PyEval_RestoreThread(static_cast<PyThreadState*>(token));
}

// Returns the id of the thread that finalized Python, or the id of no thread before that.
std::atomic<std::thread::id>& finalizing_thread() {
  static std::atomic<std::thread::id> thread{};
  return thread;
}

bool interpreter_ended_elsewhere() {
  const std::thread::id thread = finalizing_thread().load();
  return thread != std::thread::id() && thread != std::this_thread::get_id();
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  module.doc() = "Native part of openreg_runtime: the bindings behind torch.openreg.";
  openreg::runtime::set_gil_hooks({&release_gil, &acquire_gil, &interpreter_ended_elsewhere});
  // The last step of Py_Finalize() calls this, before C's exit handlers stop the device. Python has only 32 places for
  // such functions. If none is left, threads that still block on the device at exit may abort the process.
  Py_AtExit([] { finalizing_thread() = std::this_thread::get_id(); });
  openreg::runtime::bind_device(module);
  openreg::runtime::bind_statistics(module);
  openreg::runtime::bind_stream(module);
  openreg::runtime::bind_memory(module);
  openreg::runtime::bind_memory_pool(module);
  openreg::runtime::bind_snapshot(module);
  openreg::runtime::bind_generator(module);
  openreg::runtime::bind_graph(module);
  openreg::runtime::bind_launch_entry(module);
  openreg::runtime::bind_profiler(module);
  openreg::runtime::bind_sharing(module);
}
