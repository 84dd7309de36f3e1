// SPDX-License-Identifier: BSD-3-Clause
// Minimal set: reading one element on the host (Tensor.item()).
#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "minimal/selection.h"
#include "openreg/runtime/alias.h"
#include "openreg/runtime/capture.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/host_wait.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/stream.h"
#include "openreg/runtime/sync_debug.h"
#include "openreg/runtime/tool_hooks.h"
#include "support/torch_versions.h"

namespace openreg::ops {

namespace {

constexpr const char* kItem = "Tensor.item()";

// Copies the bytes of the first element to `value`, which is pageable memory. Blocks while tasks of the current stream
// are not complete.
void read_first(const at::Tensor& self, void* value, size_t bytes) {
  const c10::Stream current = runtime::current_stream(self.get_device());
  const orStream_t stream = runtime::native_handle(current);
  const void* const address = self.const_data_ptr();
  orError_t status = orTryMemcpyToHost(value, address, bytes, stream);
  if (status == orErrorNotReady) {
    runtime::check_stream_not_capturing(kItem, current);
    const runtime::HostWait wait;
    const runtime::CallReasonGuard reason(runtime::CallReason::kWait);
    status = orMemcpyAsync(value, address, bytes, orMemcpyDeviceToHost, stream);
  }
  OPENREG_CHECK(status);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  TORCH_CHECK(self.numel() > 0, kItem, ": a Tensor with 0 elements cannot be converted to Scalar");
  runtime::check_storage(kItem, self);
  runtime::warn_or_error_on_sync(kItem, self.device());
  at::Scalar result;
  AT_DISPATCH_V2(self.scalar_type(), "_local_scalar_dense", AT_WRAP([&] {
                   scalar_t value{};
                   read_first(self, &value, sizeof(value));
                   result = to_scalar(value);
                 }),
                 AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
                 AT_EXPAND(AT_FLOAT8_TYPES), AT_EXPAND(OPENREG_REDUCED_COMPLEX_TYPES), at::kHalf, at::kBool,
                 at::kBFloat16);
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  minimal::implement(library, "_local_scalar_dense", TORCH_FN(local_scalar_dense));
}

}  // namespace

}  // namespace openreg::ops
