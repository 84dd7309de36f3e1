// SPDX-License-Identifier: BSD-3-Clause
// Mechanism: a fallthrough. A dispatch key that concerns a few operators lets all others pass, as if it did not exist.
// The dispatcher skips it when it computes an operator's table, so a call costs nothing.
//
// The key is the one by which CPU kernels get the memory of our outputs (support/output_redirect.cpp). It has kernels
// for at::empty and at::empty_strided only.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <list>

#include "support/dispatch_key.h"

namespace openreg::ops {

bool take_key(c10::DispatchKey key, const char* holder) {
  // A process has one fallback for each key, and kernels of another library would run inside ours.
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  if (dispatcher.hasBackendFallbackForDispatchKey(key) || !dispatcher.getRegistrationsForDispatchKey(key).empty()) {
    return false;
  }
  // Does what TORCH_LIBRARY_IMPL(_, <key>, library) abbreviates, with `holder` instead of the file's name.
  static std::list<torch::Library> libraries;  // a library's destructor removes its registrations
  libraries.emplace_back(torch::Library::IMPL, "_", key, holder, __LINE__);
  libraries.back().fallback(torch::CppFunction::makeFallthrough());
  return true;
}

}  // namespace openreg::ops
