// SPDX-License-Identifier: BSD-3-Clause
#include "support/outputs.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <c10/core/DefaultDtype.h>

#include "openreg/runtime/allocator.h"

namespace openreg::ops {

namespace {

constexpr c10::DispatchKeySet kOutputKeys(c10::DispatchKey::PrivateUse1);

}  // namespace

at::Tensor make_output(c10::IntArrayRef sizes, c10::IntArrayRef strides, const c10::TensorOptions& options) {
  const c10::ScalarType dtype = c10::typeMetaToScalarType(options.dtype());
  if (strides.empty()) {
    return at::detail::empty_generic(sizes, &runtime::device_allocator(), kOutputKeys, dtype,
                                     options.memory_format_opt());
  }
  return at::detail::empty_strided_generic(sizes, strides, &runtime::device_allocator(), kOutputKeys, dtype);
}

c10::DimVector dense_strides_like(const at::Tensor& tensor) {
  if (tensor.is_non_overlapping_and_dense()) {
    return c10::DimVector(tensor.strides());
  }
  return c10::DimVector(at::infer_dense_strides(tensor.sizes(), tensor.strides()));
}

at::Tensor make_output_like(const at::Tensor& tensor, std::optional<c10::ScalarType> dtype) {
  return make_output(tensor.sizes(), dense_strides_like(tensor),
                     c10::TensorOptions().dtype(dtype.value_or(tensor.scalar_type())));
}

void resize_out(const at::Tensor& out, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                const c10::TensorOptions& options) {
  TORCH_CHECK(options.dtype() == out.dtype(), "Expected out tensor to have dtype ", options.dtype(), ", but got ",
              out.dtype(), " instead");
  TORCH_CHECK(options.device() == out.device(), "Expected out tensor to have device ", options.device(), ", but got ",
              out.device(), " instead");
  if (!at::native::resize_output(out, sizes)) {
    return;
  }
  if (!strides.empty()) {
    out.as_strided_(sizes, strides);
  } else if (options.memory_format_opt().has_value()) {
    out.unsafeGetTensorImpl()->empty_tensor_restride(*options.memory_format_opt());
  }
}

bool is_laid_out(const at::Tensor& out, c10::IntArrayRef strides, const c10::TensorOptions& options) {
  const bool is_there = strides.empty()
                            ? out.is_contiguous(options.memory_format_opt().value_or(c10::MemoryFormat::Contiguous))
                            : out.strides() == strides;
  return is_there || out.numel() == 0 || at::has_internal_overlap(out) == at::MemOverlap::Yes;
}

void check_inplace(const at::Tensor& self, c10::IntArrayRef sizes, const c10::TensorOptions& options) {
  TORCH_CHECK(options.dtype() == self.dtype(), "Bad in-place call: input tensor dtype ", self.dtype(),
              " and output tensor dtype ", options.dtype(), " should match");
  TORCH_CHECK(options.device() == self.device(), "Bad in-place call: input tensor device ", self.device(),
              " and output tensor device ", options.device(), " should match");
  TORCH_CHECK(sizes == self.sizes(), "Bad in-place call: input tensor size ", self.sizes(), " and output tensor size ",
              sizes, " should match");
}

}  // namespace openreg::ops
