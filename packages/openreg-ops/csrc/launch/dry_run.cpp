// SPDX-License-Identifier: BSD-3-Clause
#include "launch/dry_run.h"

#include <ATen/ThreadLocalState.h>
#include <ATen/record_function.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <thread>

#include "kernels/one_thread.h"
#include "openreg/runtime/host_wait.h"
#include "support/null_warning_handler.h"

namespace openreg::ops {

namespace {

// Returns the initial state of a thread. Reads it on a new thread, because any other thread may have changed its state.
const at::ThreadLocalState& initial_state() {
  static const auto* const state = [] {
    at::ThreadLocalState* made = nullptr;
    std::thread([&made] { made = new at::ThreadLocalState(); }).join();
    return made;  // outlives threads that launch while the process exits
  }();
  return *state;
}

}  // namespace

std::exception_ptr dry_run(c10::function_ref<void(runtime::AliasStorages&)> kernel) {
  const at::ThreadLocalStateGuard as_a_new_thread(initial_state());
  const at::RecordFunctionGuard not_recorded(/*is_enabled=*/false);
  const c10::InferenceMode inference;
  const c10::impl::ExcludeDispatchKeyGuard no_autograd(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
  NullWarningHandler silence;  // the launch itself warns the caller
  const c10::WarningUtils::WarningHandlerGuard no_warnings(&silence);
  const kernels::SingleThreadGuard one_thread;
  runtime::AliasStorages stand_ins(runtime::AliasStorages::Bytes::kStandIn);
  std::exception_ptr failure;
  try {
    kernel(stand_ins);
  } catch (...) {
    failure = std::current_exception();
  }
  // MKL starts OpenMP threads all the same after torch.set_num_threads(). Each one makes the kernels of the device
  // slower as long as it exists.
  runtime::release_openmp_threads();
  return failure;
}

}  // namespace openreg::ops
