// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/launch.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include "openreg/runtime/host_wait.h"
#include "settings.h"

namespace openreg::runtime {

namespace {

// What a user should be warned of is said on the calling line: a warning of an engine thread would name no line, and
// reach no filter of Python's.
class Silence final : public c10::WarningHandler {
  void process(const c10::Warning& /*warning*/) override {}
};

// Kernels call ATen below autograd; excluding its keys once per thread saves a guard per kernel. Tensors of inference
// mode have no version counter, which would be an allocation for each alias.
struct EngineThread {
  c10::InferenceMode inference;
  c10::impl::ExcludeDispatchKeyGuard no_autograd{c10::autograd_dispatch_keyset_with_ADInplaceOrView};
  Silence silence;
  c10::WarningUtils::WarningHandlerGuard no_warnings{&silence};

  bool flushes = flushes_denormals();

  EngineThread() {
    const int threads = settings().num_threads;
    if (threads > 0) {
      // Also becomes the default of threads that start later: ATen has no call that spares it.
      at::set_num_threads(threads);
    }
  }

  // Threads inherit the mode of the one that starts them: the next parallel kernel makes the helpers anew.
  void flush_denormals(bool flush) {
    flushes = flush;
    at::Context::setFlushDenormal(flush);
    release_openmp_threads();
  }
};

}  // namespace

void prepare_engine_thread(bool flush_denormals) {
  thread_local EngineThread state;
  if (C10_UNLIKELY(state.flushes != flush_denormals)) {
    state.flush_denormals(flush_denormals);
  }
}

void* kernel_view(const void* device_address) {
  static const ptrdiff_t offset = [] {
    ptrdiff_t value = 0;
    OPENREG_CHECK(orGetKernelViewOffset(&value));
    return value;
  }();
  return reinterpret_cast<void*>(reinterpret_cast<intptr_t>(device_address) + offset);
}

}  // namespace openreg::runtime
