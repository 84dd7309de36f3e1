// SPDX-License-Identifier: BSD-3-Clause
// Minimal set: making tensors. Every other factory of PyTorch (zeros, rand, tensor, ...) is built on these two.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TensorFactories.h>
#include <c10/core/DefaultDtype.h>
#include <torch/library.h>

#include "minimal/selection.h"
#include "openreg/runtime/allocator.h"
#include "support/device_check.h"

namespace openreg::ops {

namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

c10::Device checked_device(const char* name, std::optional<c10::Device> device, std::optional<c10::Layout> layout,
                           std::optional<bool> pin_memory) {
  TORCH_CHECK_NOT_IMPLEMENTED(layout.value_or(c10::kStrided) == c10::kStrided, name,
                              ": expected layout torch.strided on the openreg device, but got ", *layout,
                              "; use layout=torch.strided, or torch.nested for tensors of layout Jagged");
  return factory_device(name, device, pin_memory);
}

// Fills the new tensor with NaN or the largest integer if torch.use_deterministic_algorithms() requires it.
at::Tensor with_known_content(at::Tensor tensor) {
  const at::Context& context = at::globalContext();
  if (C10_UNLIKELY(context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory())) {
    at::native::fill_empty_deterministic_(tensor);
  }
  return tensor;
}

at::Tensor empty_memory_format(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype,
                               std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                               std::optional<bool> pin_memory, std::optional<c10::MemoryFormat> memory_format) {
  const CurrentDeviceGuard current(checked_device("aten::empty", device, layout, pin_memory));
  return with_known_content(at::detail::empty_generic(size, &runtime::device_allocator(), kKeys,
                                                      c10::dtype_or_default(dtype), memory_format));
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<c10::ScalarType> dtype,
                         std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                         std::optional<bool> pin_memory) {
  const CurrentDeviceGuard current(checked_device("aten::empty_strided", device, layout, pin_memory));
  return with_known_content(at::detail::empty_strided_generic(size, stride, &runtime::device_allocator(), kKeys,
                                                              c10::dtype_or_default(dtype)));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  minimal::implement(library, "empty.memory_format", TORCH_FN(empty_memory_format));
  minimal::implement(library, "empty_strided", TORCH_FN(empty_strided));
}

}  // namespace

}  // namespace openreg::ops
