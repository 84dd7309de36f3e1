// SPDX-License-Identifier: BSD-3-Clause
// What the operands of a derivative have to be: gradients as the outputs of the forward operator are, and what that
// saved as it left it. PyTorch's kernels for the CPU go through one operand by the sizes of another, and read beyond
// one that is too small. So each derivative says here, on the calling line, what it expects; the shape of an output
// comes from what describes it forward, a description of ours or PyTorch's meta function.
//
// Derivatives that PyTorch's iterator computes expect nothing: their operands are broadcast, as on every device.
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/DimVector.h>

#include <optional>
#include <type_traits>

namespace openreg::ops {

// Each throws c10::Error, which names the operator and the operand, unless the operand is what is expected. One that is
// undefined or absent is not looked at.

// Of these sizes and this dtype.
void expect(const char* op, const char* what, const at::Tensor& operand, c10::IntArrayRef sizes, c10::ScalarType dtype);
inline void expect(const char* op, const char* what, const std::optional<at::Tensor>& operand, c10::IntArrayRef sizes,
                   c10::ScalarType dtype) {
  if (operand.has_value()) {
    expect(op, what, *operand, sizes, dtype);
  }
}

// Of the sizes and the dtype of another operand.
inline void expect_like(const char* op, const char* what, const at::Tensor& operand, const at::Tensor& other) {
  expect(op, what, operand, other.sizes(), other.scalar_type());
}

// Of this dtype and so many elements, in any shape.
void expect_count(const char* op, const char* what, const at::Tensor& operand, int64_t count, c10::ScalarType dtype);
inline void expect_count(const char* op, const char* what, const std::optional<at::Tensor>& operand, int64_t count,
                         c10::ScalarType dtype) {
  if (operand.has_value()) {
    expect_count(op, what, *operand, count, dtype);
  }
}

// Of this dtype and of a shape that is broadcast to `sizes`.
void expect_expandable(const char* op, const char* what, const at::Tensor& operand, c10::IntArrayRef sizes,
                       c10::ScalarType dtype);

// Of so many dimensions.
void expect_dim(const char* op, const char* what, const at::Tensor& operand, int64_t dim);

// The sizes of the first output for which a meta function of PyTorch asks; throws what that throws.
template <class Meta, class... Args>
c10::DimVector output_sizes(const Args&... args) {
  static_assert(!std::is_base_of_v<at::TensorIteratorBase, Meta>, "an iterator's derivative broadcasts its operands");
  struct Asked final : Meta {
    const at::Tensor& maybe_get_output(int64_t /*index*/) override { return none; }
    void set_output_strided(int64_t index, at::IntArrayRef asked, at::IntArrayRef /*strides*/,
                            at::TensorOptions /*options*/) override {
      if (index == 0) {
        sizes = c10::DimVector(asked);
      }
    }
    void set_output_raw_strided(int64_t index, at::IntArrayRef asked, at::IntArrayRef strides,
                                at::TensorOptions options) override {
      set_output_strided(index, asked, strides, options);
    }
    at::Tensor none;
    c10::DimVector sizes;
  };
  Asked asked;
  asked.meta(args...);
  return asked.sizes;
}

}  // namespace openreg::ops
