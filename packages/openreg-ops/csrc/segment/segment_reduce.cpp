// SPDX-License-Identifier: BSD-3-Clause
// Reductions of segments, whose lengths or offsets are a tensor.
#include <ATen/WrapDimUtils.h>
#include <ATen/native/ReductionType.h>

#include "declare/declare.h"

namespace openreg::ops {

namespace {

// The host waits for the verdict, as on every device of PyTorch; `unsafe` saves that.
void check_lengths(const at::Tensor& lengths, int64_t size) {
  const at::Tensor fits = lengths.ge(0).all().logical_and(lengths.sum(-1).eq(size).all());
  TORCH_CHECK(fits.item<bool>(),
              "segment_reduce(): lengths must not be negative, and each row of them has to add up to ", size,
              ", the size of data along axis");
}

OutputSpec describe_segment_reduce(const at::Tensor& data, std::string_view reduce, MaybeTensor lengths,
                                   MaybeTensor indices, MaybeTensor offsets, int64_t axis, bool unsafe,
                                   const std::optional<at::Scalar>& /*initial*/) {
  at::native::get_reduction_enum(reduce);
  TORCH_CHECK(!is_given(indices), "segment_reduce(): indices based reduction is not supported yet.");
  TORCH_CHECK(is_given(lengths) || is_given(offsets), "segment_reduce(): Either lengths or offsets must be defined.");
  const int64_t wrapped = at::maybe_wrap_dim(axis, data.dim());
  const at::Tensor& bounds = is_given(offsets) ? *offsets : *lengths;
  const char* const name = is_given(offsets) ? "offsets" : "lengths";
  TORCH_CHECK(data.dim() >= bounds.dim(), "segment_reduce(): Expected data.dim() >= ", name, ".dim()");
  TORCH_CHECK(wrapped == bounds.dim() - 1, "segment_reduce(): Expected axis to be the last dimension of ", name,
              " but got ", axis, ".");
  if (!unsafe && !is_given(offsets) && lengths->numel() > 0) {
    check_lengths(*lengths, data.size(wrapped));
  }
  OutputSpec spec = output_of_shape(data);
  spec.sizes[static_cast<size_t>(wrapped)] = bounds.size(wrapped) - (is_given(offsets) ? 1 : 0);
  return spec;
}

OutputSpec describe_segment_reduce_backward(const at::Tensor& grad, const at::Tensor& /*output*/,
                                            const at::Tensor& data, std::string_view reduce, MaybeTensor lengths,
                                            MaybeTensor offsets, int64_t /*axis*/,
                                            const std::optional<at::Scalar>& /*initial*/) {
  at::native::get_reduction_enum(reduce);
  TORCH_CHECK(is_given(lengths) || is_given(offsets), "segment_reduce(): Either lengths or offsets must be defined.");
  return output_of(data.sizes(), grad.scalar_type());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  described<describe_segment_reduce_backward, op::_segment_reduce_backward>(library, cpu::_segment_reduce_backward);
  described<describe_segment_reduce, op::segment_reduce>(library, cpu::segment_reduce, kFloats);
}

}  // namespace

}  // namespace openreg::ops
