// SPDX-License-Identifier: BSD-3-Clause
// Way: fallthrough. A dispatch key that concerns a few operators lets all others pass, as if it were not there: the
// dispatcher skips it when it computes an operator's table, and a call pays nothing.
//
// The key is the one by which kernels of the CPU get the memory of our outputs (support/results_in_place.cpp): it has
// kernels for at::empty and at::empty_strided alone.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <list>

#include "support/dispatch_key.h"

namespace openreg::ops {

bool take_key(c10::DispatchKey key, const char* holder) {
  // A process has one fallback for each key, and kernels of another library would run inside of ours.
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  if (dispatcher.hasBackendFallbackForDispatchKey(key) || !dispatcher.getRegistrationsForDispatchKey(key).empty()) {
    return false;
  }
  // What TORCH_LIBRARY_IMPL(_, <key>, library) is short for, with a text of our own in place of file and line.
  static std::list<torch::Library> libraries;  // what is registered goes with its library
  libraries.emplace_back(torch::Library::IMPL, "_", key, holder, __LINE__);
  libraries.back().fallback(torch::CppFunction::makeFallthrough());
  return true;
}

}  // namespace openreg::ops
