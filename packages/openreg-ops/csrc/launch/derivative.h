// SPDX-License-Identifier: BSD-3-Clause
// Checks of the operands of a derivative: gradients must match the outputs of the forward operator, and saved tensors
// must be as that operator left them. PyTorch's CPU kernels traverse one operand by the sizes of another, and read
// beyond one that is too small. So each derivative checks its operands here, before the launch. The shape of an output
// comes from the forward operator's meta function, which is ours or PyTorch's.
//
// Derivatives that PyTorch computes by a TensorIterator need no check, because the iterator broadcasts their operands,
// as on every device.
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/DimVector.h>

#include <optional>
#include <type_traits>

namespace openreg::ops {

// Each function throws c10::Error, with the names `op` of the operator and `what` of the operand, if the operand does
// not match. All except expect_dim() accept an undefined or absent operand.

// Requires these sizes and this dtype.
void expect(const char* op, const char* what, const at::Tensor& operand, c10::IntArrayRef sizes, c10::ScalarType dtype);
inline void expect(const char* op, const char* what, const std::optional<at::Tensor>& operand, c10::IntArrayRef sizes,
                   c10::ScalarType dtype) {
  if (operand.has_value()) {
    expect(op, what, *operand, sizes, dtype);
  }
}

// Requires the sizes and the dtype of another operand.
inline void expect_like(const char* op, const char* what, const at::Tensor& operand, const at::Tensor& other) {
  expect(op, what, operand, other.sizes(), other.scalar_type());
}

// Requires this dtype and `count` elements, in any shape.
void expect_count(const char* op, const char* what, const at::Tensor& operand, int64_t count, c10::ScalarType dtype);
inline void expect_count(const char* op, const char* what, const std::optional<at::Tensor>& operand, int64_t count,
                         c10::ScalarType dtype) {
  if (operand.has_value()) {
    expect_count(op, what, *operand, count, dtype);
  }
}

// Requires this dtype and a shape that can be broadcast to `sizes`.
void expect_expandable(const char* op, const char* what, const at::Tensor& operand, c10::IntArrayRef sizes,
                       c10::ScalarType dtype);

// Requires `dim` dimensions. The operand must be defined.
void expect_dim(const char* op, const char* what, const at::Tensor& operand, int64_t dim);

// Returns the sizes of the first output that a meta function of PyTorch requests. Throws the errors of that function.
template <class Meta, class... Args>
c10::DimVector output_sizes(const Args&... args) {
  static_assert(!std::is_base_of_v<at::TensorIteratorBase, Meta>, "an iterator's derivative broadcasts its operands");
  struct SizeRecorder final : Meta {
    const at::Tensor& maybe_get_output(int64_t /*index*/) override { return none; }
    void set_output_strided(int64_t index, at::IntArrayRef requested, at::IntArrayRef /*strides*/,
                            at::TensorOptions /*options*/) override {
      if (index == 0) {
        sizes = c10::DimVector(requested);
      }
    }
    void set_output_raw_strided(int64_t index, at::IntArrayRef requested, at::IntArrayRef strides,
                                at::TensorOptions options) override {
      set_output_strided(index, requested, strides, options);
    }
    at::Tensor none;
    c10::DimVector sizes;
  };
  SizeRecorder recorder;
  recorder.meta(args...);
  return recorder.sizes;
}

}  // namespace openreg::ops
