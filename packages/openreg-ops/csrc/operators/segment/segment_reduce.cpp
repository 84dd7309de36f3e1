// SPDX-License-Identifier: BSD-3-Clause
// Reductions of segments, whose lengths or offsets are in a tensor.
#include <ATen/WrapDimUtils.h>
#include <ATen/native/ReductionType.h>

#include "launch/derivative.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

// Throws c10::Error if lengths are negative or have a wrong sum. Blocks to read the result, as on every device of
// PyTorch. Callers skip it if `unsafe`.
void check_lengths(const at::Tensor& lengths, int64_t size) {
  const at::Tensor fits = lengths.ge(0).all().logical_and(lengths.sum(-1).eq(size).all());
  TORCH_CHECK(fits.item<bool>(),
              "segment_reduce(): lengths must not be negative, and each row of them has to add up to ", size,
              ", the size of data along axis");
}

// Returns the specification of an output with a row for each segment, whose bounds are along `axis`.
OutputSpec reduced_segments(const at::Tensor& data, std::string_view reduce, MaybeTensor lengths, MaybeTensor offsets,
                            int64_t axis) {
  at::native::get_reduction_enum(reduce);
  TORCH_CHECK(is_given(lengths) || is_given(offsets), "segment_reduce(): Either lengths or offsets must be defined.");
  const int64_t wrapped = at::maybe_wrap_dim(axis, data.dim());
  const at::Tensor& bounds = is_given(offsets) ? *offsets : *lengths;
  const char* const name = is_given(offsets) ? "offsets" : "lengths";
  TORCH_CHECK(data.dim() >= bounds.dim(), "segment_reduce(): Expected data.dim() >= ", name, ".dim()");
  TORCH_CHECK(wrapped == bounds.dim() - 1, "segment_reduce(): Expected axis to be the last dimension of ", name,
              " but got ", axis, ".");
  // PyTorch does not check this, and would read out of bounds.
  TORCH_CHECK(bounds.sizes().slice(0, wrapped) == data.sizes().slice(0, wrapped), "segment_reduce(): Expected ", name,
              " with the sizes of data before axis ", axis, ", but got ", name, " of shape ", bounds.sizes(),
              " for data of shape ", data.sizes());
  TORCH_CHECK(!is_given(offsets) || bounds.size(wrapped) > 0,
              "segment_reduce(): Expected at least one offset, as there is one more of them than segments");
  OutputSpec spec = output_of_shape(data);
  spec.sizes[static_cast<size_t>(wrapped)] = bounds.size(wrapped) - (is_given(offsets) ? 1 : 0);
  return spec;
}

OutputSpec meta_segment_reduce(const at::Tensor& data, std::string_view reduce, MaybeTensor lengths,
                               MaybeTensor indices, MaybeTensor offsets, int64_t axis, bool unsafe,
                               const std::optional<at::Scalar>& /*initial*/) {
  TORCH_CHECK(!is_given(indices), "segment_reduce(): indices based reduction is not supported yet.");
  OutputSpec spec = reduced_segments(data, reduce, lengths, offsets, axis);
  if (!unsafe && !is_given(offsets) && lengths->numel() > 0) {
    check_lengths(*lengths, data.size(at::maybe_wrap_dim(axis, data.dim())));
  }
  return spec;
}

OutputSpec meta_segment_reduce_backward(const at::Tensor& grad, const at::Tensor& output, const at::Tensor& data,
                                        std::string_view reduce, MaybeTensor lengths, MaybeTensor offsets, int64_t axis,
                                        const std::optional<at::Scalar>& /*initial*/) {
  const OutputSpec spec = reduced_segments(data, reduce, lengths, offsets, axis);
  expect(op::_segment_reduce_backward::name, "grad", grad, spec.sizes, spec.dtype);
  expect(op::_segment_reduce_backward::name, "output", output, spec.sizes, spec.dtype);
  return output_of(data.sizes(), grad.scalar_type());
}

// Throws c10::Error if a segment is out of bounds, because the kernels do not check bounds. Runs on the engine thread.
void check_bounds_on_engine(const char* name, const at::Tensor& data, MaybeTensor lengths, MaybeTensor offsets,
                            int64_t axis) {
  const int64_t size = data.size(axis);
  const at::Tensor& bounds = is_given(offsets) ? *offsets : *lengths;
  if (bounds.numel() > 0) {
    const at::Tensor ends = is_given(offsets) ? bounds : bounds.sum(-1);
    TORCH_CHECK(bounds.min().item<int64_t>() >= 0 && ends.max().item<int64_t>() <= size, name,
                ": a segment lies beyond the ", size, " elements of data along axis ", axis);
  }
}

at::Tensor reduce_kernel(const at::Tensor& data, std::string_view reduce, MaybeTensor lengths, MaybeTensor indices,
                         MaybeTensor offsets, int64_t axis, bool unsafe, const std::optional<at::Scalar>& initial) {
  check_bounds_on_engine(op::segment_reduce::name, data, lengths, offsets, axis);
  return cpu::segment_reduce(data, reduce, lengths, indices, offsets, axis, unsafe, initial);
}

at::Tensor reduce_backward_kernel(const at::Tensor& grad, const at::Tensor& output, const at::Tensor& data,
                                  std::string_view reduce, MaybeTensor lengths, MaybeTensor offsets, int64_t axis,
                                  const std::optional<at::Scalar>& initial) {
  check_bounds_on_engine(op::_segment_reduce_backward::name, data, lengths, offsets, axis);
  return cpu::_segment_reduce_backward(grad, output, data, reduce, lengths, offsets, axis, initial);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  unstructured<meta_segment_reduce_backward, op::_segment_reduce_backward>(library, reduce_backward_kernel, kFloats);
  unstructured<meta_segment_reduce, op::segment_reduce>(library, reduce_kernel, kFloats);
}

}  // namespace

}  // namespace openreg::ops
