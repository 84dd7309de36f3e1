// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/launch.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <cstdio>

#include "base/enqueue.h"
#include "base/settings.h"
#include "base/status_message.h"
#include "launch/alias_pool.h"
#include "launch/openmp_throttle.h"
#include "openreg/runtime/host_wait.h"
#include "openreg/runtime/status.h"

namespace openreg::runtime {

namespace {

// A handler that drops all warnings. A warning on an engine thread would contain no line of Python code and would
// bypass Python's filters, so operators warn on the calling thread instead.
class NullWarningHandler final : public c10::WarningHandler {
  void process(const c10::Warning& /*warning*/) override {}
};

// The state of an engine thread. It excludes autograd's dispatch keys for the whole thread, which saves a guard per
// kernel. It enables inference mode, because tensors of that mode have no version counter, which would cost an
// allocation per alias.
struct EngineThread {
  c10::InferenceMode inference;
  c10::impl::ExcludeDispatchKeyGuard no_autograd{c10::autograd_dispatch_keyset_with_ADInplaceOrView};
  NullWarningHandler silence;
  c10::WarningUtils::WarningHandlerGuard no_warnings{&silence};
  AliasPool aliases;
  OpenMpThrottle throttle;

  bool flushes = flushes_denormals();

  EngineThread() {
    const int threads = settings().num_threads;
    if (threads > 0) {
      // This also changes the default of threads that start later, because ATen has no call for one thread only.
      at::set_num_threads(threads);
    }
  }

  // Sets the mode of this thread and ends its OpenMP threads. Threads inherit the mode of the thread that starts them,
  // so those that the next parallel kernel starts have the new mode.
  void flush_denormals(bool flush) {
    flushes = flush;
    at::Context::setFlushDenormal(flush);
    release_openmp_threads();
  }
};

}  // namespace

void prepare_engine_thread(bool flush_denormals) {
  thread_local EngineThread state;
  state.throttle.before_kernel();
  if (C10_UNLIKELY(state.flushes != flush_denormals)) {
    state.flush_denormals(flush_denormals);
  }
}

orError_t enqueue_kernel(orStream_t stream, const orKernel& kernel, const orOperand* operands, size_t operand_count,
                         KernelState& state) {
  const bool has_operands = C10_UNLIKELY(operands != nullptr);
  orError_t status = has_operands ? orTryLaunchKernelWithOperands(stream, &kernel, operands, operand_count)
                                  : orTryLaunchKernel(stream, &kernel);
  if (C10_LIKELY(status == orSuccess)) {
    state.release();
    return orSuccess;
  }
  // The call above would have blocked, or it failed. If it failed, the call below fails again, so that the error
  // message contains the name of the documented function.
  const HostWait wait;
  status = has_operands ? orLaunchKernelWithOperands(stream, &kernel, operands, operand_count)
                        : orLaunchKernel(stream, &kernel);
  if (status == orSuccess) {
    state.release();
  }
  return status;
}

void launch_kernel(c10::Stream stream, const orKernel& kernel, const Operands* operands) {
  KernelState state(kernel.state, kernel.release);
  static constexpr orOperand kNone{};  // means that there are no operands; null means that they are unknown
  const orOperand* operand_list = nullptr;
  size_t count = 0;
  if (C10_UNLIKELY(operands != nullptr)) {
    count = operands->size();
    operand_list = count == 0 ? &kNone : operands->data();
  }
  OPENREG_CHECK(enqueue_kernel(native_handle(stream), kernel, operand_list, count, state));
}

orError_t describe_exception(char* message, size_t message_size) noexcept {
  std::snprintf(message, message_size, "%s", current_exception_text());
  return orErrorLaunchFailure;
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
