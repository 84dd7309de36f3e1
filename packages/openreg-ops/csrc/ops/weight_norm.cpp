// SPDX-License-Identifier: BSD-3-Clause
// Weight normalisation with backward: w = v * (g / |v|), with one norm for each place along `dim`
// (torch.nn.utils.parametrizations.weight_norm).
#include <ATen/OpMathType.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/div.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mul.h>
#include <torch/library.h>

#include "common/launch_function.h"

namespace openreg::ops {

namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;

// The dimensions that a norm runs over.
std::vector<int64_t> other_dims(const at::Tensor& tensor, int64_t dim) {
  std::vector<int64_t> dims;
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    if (i != dim) {
      dims.push_back(i);
    }
  }
  return dims;
}

at::Tensor sum_except(const at::Tensor& tensor, int64_t dim) {
  const std::vector<int64_t> dims = other_dims(tensor, dim);
  return dims.empty() ? tensor : tensor.sum(dims, /*keepdim=*/true);
}

int64_t check_operands(const char* name, const at::Tensor& v, const at::Tensor& g, int64_t dim) {
  const int64_t wrapped = at::maybe_wrap_dim(dim, v.dim());
  std::vector<int64_t> expected(v.dim(), 1);
  expected[wrapped] = v.size(wrapped);
  TORCH_CHECK(g.sizes() == c10::IntArrayRef(expected), name, ": expected g to have shape ", expected,
              " for v of shape ", v.sizes(), " and dim ", dim, ", but got ", g.sizes());
  TORCH_CHECK(at::isFloatingType(v.scalar_type()) && v.scalar_type() == g.scalar_type(), name,
              ": expected v and g of one floating dtype, but got ", v.scalar_type(), " and ", g.scalar_type());
  return wrapped;
}

void forward_kernel(const at::Tensor& v, const at::Tensor& g, int64_t dim, at::Tensor& w, at::Tensor& norms) {
  const std::vector<int64_t> dims = other_dims(v, dim);
  if (dims.empty()) {
    norms.copy_(v.abs());
  } else {
    at::linalg_vector_norm_out(norms, v, 2, dims, /*keepdim=*/true, norms.scalar_type());
  }
  w.copy_(at::mul(v, at::div(g, norms)));
}

Pair weight_norm(const at::Tensor& v, const at::Tensor& g, int64_t dim) {
  constexpr const char* kName = "aten::_weight_norm_interface";
  const c10::Device device = device_of(kName, v, g);
  check_same_device(kName, device, v, g);
  const int64_t wrapped = check_operands(kName, v, g, dim);
  const CurrentDevice current(device);
  const auto options = v.options().memory_format(std::nullopt);
  at::Tensor w = make_output(v.sizes(), {}, options);
  at::Tensor norms = make_output(g.sizes(), {}, options.dtype(at::toOpMathType(g.scalar_type())));
  launch_function(kName, device, &forward_kernel, v, g, wrapped, w, norms);
  return {std::move(w), std::move(norms)};
}

void backward_kernel(const at::Tensor& grad, const at::Tensor& v, const at::Tensor& g, const at::Tensor& norms,
                     int64_t dim, at::Tensor& grad_v, at::Tensor& grad_g) {
  const at::ScalarType wide = norms.scalar_type();
  const at::Tensor of_w = grad.to(wide);
  const at::Tensor along = at::div(sum_except(at::mul(of_w, v), dim), norms);
  grad_g.copy_(along);
  grad_v.copy_(at::mul(of_w.sub(at::mul(v, at::div(along, norms))), at::div(g, norms)));
}

Pair weight_norm_backward(const at::Tensor& grad, const at::Tensor& v, const at::Tensor& g, const at::Tensor& norms,
                          int64_t dim) {
  constexpr const char* kName = "aten::_weight_norm_interface_backward";
  const c10::Device device = device_of(kName, grad, v);
  check_same_device(kName, device, grad, v, g, norms);
  const int64_t wrapped = check_operands(kName, v, g, dim);
  const CurrentDevice current(device);
  at::Tensor grad_v = make_output(v.sizes(), {}, v.options().memory_format(std::nullopt));
  at::Tensor grad_g = make_output(g.sizes(), {}, g.options().memory_format(std::nullopt));
  launch_function(kName, device, &backward_kernel, grad, v, g, norms, wrapped, grad_v, grad_g);
  return {std::move(grad_v), std::move(grad_g)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_weight_norm_interface", TORCH_FN(weight_norm));
  library.impl("_weight_norm_interface_backward", TORCH_FN(weight_norm_backward));
}

}  // namespace

}  // namespace openreg::ops
