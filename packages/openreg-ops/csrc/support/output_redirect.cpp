// SPDX-License-Identifier: BSD-3-Clause
// The redirection uses DeferredInit, the dispatch key that PyTorch reserves for an extension that intercepts the
// creation of tensors. mechanisms/fallthrough.cpp registers a fallthrough for all other operators. The key costs
// nothing in threads that have not enabled it. Kernels run on the engine threads, which belong to this backend.
#include "support/output_redirect.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <utility>

#include "support/dispatch_key.h"

namespace openreg::ops {

namespace {

constexpr c10::DispatchKey kKey = c10::DispatchKey::DeferredInit;

thread_local OutputRedirectGuard* innermost = nullptr;

bool is_of_cpu(std::optional<c10::Layout> layout, std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  return layout.value_or(c10::kStrided) == c10::kStrided && device.value_or(at::kCPU).is_cpu() &&
         !pin_memory.value_or(false);
}

at::Tensor empty(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                 std::optional<c10::Device> device, std::optional<bool> pin_memory,
                 std::optional<c10::MemoryFormat> format) {
  if (innermost != nullptr && is_of_cpu(layout, device, pin_memory)) {
    at::Tensor output = innermost->take(size, std::nullopt, c10::dtype_or_default(dtype),
                                        format.value_or(c10::MemoryFormat::Contiguous));
    if (output.defined()) {
      return output;
    }
  }
  const c10::impl::ExcludeDispatchKeyGuard below(kKey);
  return at::empty(size, dtype, layout, device, pin_memory, format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef strides, std::optional<c10::ScalarType> dtype,
                         std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                         std::optional<bool> pin_memory) {
  if (innermost != nullptr && is_of_cpu(layout, device, pin_memory)) {
    at::Tensor output = innermost->take(size, strides, c10::dtype_or_default(dtype), c10::MemoryFormat::Contiguous);
    if (output.defined()) {
      return output;
    }
  }
  const c10::impl::ExcludeDispatchKeyGuard below(kKey);
  return at::empty_strided(size, strides, dtype, layout, device, pin_memory);
}

// The place of the earlier registration in PyTorch's error for a library that registers for the key later.
constexpr char kHolder[] =
    "openreg_ops/csrc/support/output_redirect.cpp, which leaves the key to a library that comes before it (import "
    "that "
    "library before openreg_ops, in a process with TORCH_DEVICE_BACKEND_AUTOLOAD=0)";

// False if another library has the key. Kernels then allocate memory for their results, which put() copies.
const bool has_key = [] {
  if (!take_key(kKey, kHolder)) {
    return false;
  }
  static torch::Library library(torch::Library::IMPL, "aten", kKey, kHolder, __LINE__);
  library.impl("empty.memory_format", TORCH_FN(empty));
  library.impl("empty_strided", TORCH_FN(empty_strided));
  return true;
}();

}  // namespace

OutputRedirectGuard::OutputRedirectGuard(std::initializer_list<at::Tensor> outputs, at::Tensor buffer)
    : buffer_(std::move(buffer)), outer_(innermost), active_(has_key) {
  TORCH_INTERNAL_ASSERT(outputs.size() <= kMost);
  std::copy(outputs.begin(), outputs.end(), outputs_.begin());
  if (active_) {
    innermost = this;
    c10::impl::tls_set_dispatch_key_included(kKey, true);
  }
}

OutputRedirectGuard::~OutputRedirectGuard() {
  end();
}

void OutputRedirectGuard::end() {
  if (active_) {
    active_ = false;
    innermost = outer_;
    c10::impl::tls_set_dispatch_key_included(kKey, outer_ != nullptr);
  }
}

void OutputRedirectGuard::put(std::initializer_list<at::Tensor> results) {
  end();
  TORCH_INTERNAL_ASSERT(results.size() <= kMost);
  std::array<at::Tensor, kMost> pending;
  size_t index = 0;
  for (const at::Tensor& result : results) {
    const at::Tensor& output = outputs_[index];
    const bool is_there = output.defined() && result.is_alias_of(output) && result.strides() == output.strides() &&
                          result.storage_offset() == output.storage_offset() && result.is_conj() == output.is_conj();
    if (output.defined() && !is_there) {
      const auto holds_it = [&](const at::Tensor& other) { return other.defined() && result.is_alias_of(other); };
      const bool may_be_overwritten = std::any_of(outputs_.begin(), outputs_.end(), holds_it);
      pending[index] = may_be_overwritten ? result.clone() : result;
    }
    ++index;
  }
  for (index = 0; index < kMost; ++index) {
    if (pending[index].defined()) {
      outputs_[index].copy_(pending[index]);
    }
  }
}

at::Tensor OutputRedirectGuard::take(c10::IntArrayRef size, at::OptionalIntArrayRef strides, c10::ScalarType dtype,
                                     c10::MemoryFormat format) {
  for (size_t i = 0; i < kMost; ++i) {
    const at::Tensor& output = outputs_[i];
    if (output.defined() && !taken_[i] && output.scalar_type() == dtype && output.sizes() == size &&
        (strides.has_value() ? output.strides() == *strides : output.is_contiguous(format))) {
      taken_[i] = true;
      return output.alias();  // a separate tensor, because the kernel may change its shape
    }
  }
  if (buffer_.defined() && buffer_.scalar_type() == dtype && size.size() == 1 && size[0] <= buffer_.numel()) {
    return std::exchange(buffer_, {}).narrow(0, 0, size[0]);
  }
  return {};
}

}  // namespace openreg::ops
