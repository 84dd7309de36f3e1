// SPDX-License-Identifier: BSD-3-Clause
// Softmax over the elements of a COO tensor with its gradient, and the gradient of sums over some of its dimensions.
// The results have the elements of an operand, which is coalesced first.
#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "operators/sparse/pattern.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

// Op is _sparse_softmax or _sparse_log_softmax.
template <class Op>
at::Tensor sparse_softmax(const at::Tensor& self, int64_t dim, bool half_to_float) {
  const OperandDeviceGuard device({Op::name}, self);
  TORCH_CHECK(!half_to_float, Op::name, ": half to float conversion is not supported on ", self.device());
  at::maybe_wrap_dim(dim, self.dim());
  if (self.numel() == 0) {
    return at::zeros_like(self);  // the CPU drops indices of values without elements
  }
  const at::Tensor input = self.coalesce();
  at::Tensor output = empty_of_pattern(input, input.scalar_type());
  launch_values<Op, kCoo>(device, output, input, dim, half_to_float);
  return output;
}

template <class Op>
at::Tensor sparse_softmax_backward(const at::Tensor& grad, const at::Tensor& output, int64_t dim,
                                   const at::Tensor& self) {
  const OperandDeviceGuard device({Op::name}, grad, output, self);
  at::maybe_wrap_dim(dim, output.dim());
  TORCH_CHECK(grad.is_sparse() && grad.sizes() == output.sizes(), Op::name,
              ": expected a sparse gradient of the output's size, but got ", grad.layout(), " of size ", grad.sizes());
  const at::Tensor pattern = output.coalesce();
  at::Tensor result = empty_of_pattern(pattern, pattern.scalar_type());
  launch_values<Op, kCoo>(device, result, grad.coalesce(), pattern, dim, self);
  return result;
}

at::Tensor sum_backward(const at::Tensor& grad, const at::Tensor& self, c10::IntArrayRef dim) {
  const OperandDeviceGuard device({op::_sparse_sum_backward::name}, grad, self);
  if ((grad.is_sparse() && grad._nnz() == 0) || grad.numel() == 0) {
    return at::zeros_like(self);
  }
  c10::DimVector dims(dim);
  at::maybe_wrap_dims(dims, self.dim());
  const bool all = std::count_if(dims.begin(), dims.end(), [&](int64_t each) { return each < self.sparse_dim(); }) ==
                   self.sparse_dim();
  TORCH_CHECK(grad.is_sparse() != all, "_sparse_sum_backward_cpu: expected grad_ Tensor to be ",
              all ? "dense since all sparse dims are summed" : "sparse, but got dense");
  const at::Tensor input = self.coalesce();
  at::Tensor result = empty_of_pattern(input, grad.scalar_type());
  launch_values<op::_sparse_sum_backward, kCoo>(device, result, grad.is_sparse() ? grad.coalesce() : grad, input, dim);
  return result;
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, library) {
  const RegistrationKeyGuard sparse(c10::DispatchKey::SparsePrivateUse1);
  function<op::_sparse_softmax>(library, sparse_softmax<op::_sparse_softmax>);
  function<op::_sparse_log_softmax>(library, sparse_softmax<op::_sparse_log_softmax>);
  function<op::_sparse_softmax_backward_data>(library, sparse_softmax_backward<op::_sparse_softmax_backward_data>);
  function<op::_sparse_log_softmax_backward_data>(library,
                                                  sparse_softmax_backward<op::_sparse_log_softmax_backward_data>);
  function<op::_sparse_sum_backward>(library, sum_backward);
}

}  // namespace

}  // namespace openreg::ops
