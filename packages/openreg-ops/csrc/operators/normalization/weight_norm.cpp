// SPDX-License-Identifier: BSD-3-Clause
// Weight normalization with backward: w = v * (g / |v|), with one norm for each index along `dim`
// (torch.nn.utils.parametrizations.weight_norm).
#include <ATen/OpMathType.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/div.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mul.h>

#include "launch/derivative.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;

// Returns the dimensions over which a norm is computed: all except `dim`.
std::vector<int64_t> other_dims(const at::Tensor& tensor, int64_t dim) {
  dim = at::maybe_wrap_dim(dim, tensor.dim());
  std::vector<int64_t> dims;
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    if (i != dim) {
      dims.push_back(i);
    }
  }
  return dims;
}

void check_operands(const char* name, const at::Tensor& v, const at::Tensor& g, int64_t dim) {
  const int64_t wrapped = at::maybe_wrap_dim(dim, v.dim());
  std::vector<int64_t> expected(v.dim(), 1);
  expected[wrapped] = v.size(wrapped);
  TORCH_CHECK(g.sizes() == c10::IntArrayRef(expected), name, ": expected g to have shape ", expected,
              " for v of shape ", v.sizes(), " and dim ", dim, ", but got ", g.sizes());
  TORCH_CHECK(at::isFloatingType(v.scalar_type()) && v.scalar_type() == g.scalar_type(), name,
              ": expected v and g of one floating dtype, but got ", v.scalar_type(), " and ", g.scalar_type());
}

std::array<OutputSpec, 2> meta_weight_norm(const at::Tensor& v, const at::Tensor& g, int64_t dim) {
  check_operands(op::_weight_norm_interface::name, v, g, dim);
  return {output_of_shape(v), output_of(g.sizes(), at::toOpMathType(g.scalar_type()))};
}

Pair weight_norm(const at::Tensor& v, const at::Tensor& g, int64_t dim) {
  const at::ScalarType wide = at::toOpMathType(g.scalar_type());
  const std::vector<int64_t> dims = other_dims(v, dim);
  const at::Tensor norms = dims.empty() ? v.abs().to(wide) : at::linalg_vector_norm(v, 2, dims, /*keepdim=*/true, wide);
  return {at::mul(v, at::div(g, norms)).to(v.scalar_type()), norms};
}

std::array<OutputSpec, 2> meta_weight_norm_backward(const at::Tensor& grad, const at::Tensor& v, const at::Tensor& g,
                                                    const at::Tensor& norms, int64_t dim) {
  constexpr const char* kName = op::_weight_norm_interface_backward::name;
  check_operands(kName, v, g, dim);
  expect_like(kName, "grad_w", grad, v);
  expect(kName, "saved_norms", norms, g.sizes(), at::toOpMathType(g.scalar_type()));
  return {output_of_shape(v), output_of_shape(g)};
}

Pair weight_norm_backward(const at::Tensor& grad, const at::Tensor& v, const at::Tensor& g, const at::Tensor& norms,
                          int64_t dim) {
  const at::Tensor of_w = grad.to(norms.scalar_type());
  const at::Tensor products = at::mul(of_w, v);
  const std::vector<int64_t> dims = other_dims(v, dim);
  const at::Tensor along = at::div(dims.empty() ? products : products.sum(dims, /*keepdim=*/true), norms);
  const at::Tensor grad_v = at::mul(of_w.sub(at::mul(v, at::div(along, norms))), at::div(g, norms));
  return {grad_v.to(v.scalar_type()), along.to(g.scalar_type())};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  unstructured<meta_weight_norm, op::_weight_norm_interface>(library, weight_norm);
  unstructured<meta_weight_norm_backward, op::_weight_norm_interface_backward>(library, weight_norm_backward);
}

}  // namespace

}  // namespace openreg::ops
