// SPDX-License-Identifier: BSD-3-Clause
// Embedding and its gradient, with our own kernels.
#include <ATen/TensorUtils.h>
#include <ATen/ops/embedding_renorm_cpu_dispatch.h>
#include <ATen/ops/embedding_renorm_ops.h>
#include <torch/library.h>

#include "common/launch_on.h"
#include "common/raw_operands.h"
#include "common/torch_versions.h"
#include "raw/embedding.h"

namespace openreg::ops {

namespace {

void check_indices(const char* name, const at::Tensor& indices) {
  at::checkScalarTypes(name, at::TensorArg(indices, "indices", 1), {at::kLong, at::kInt});
}

at::Tensor embedding(const at::Tensor& weight, const at::Tensor& indices, int64_t /*padding_idx*/,
                     bool /*scale_grad_by_freq*/, bool /*sparse*/) {
  constexpr const char* kName = "aten::embedding";
  TORCH_CHECK(weight.dim() == 2, "'weight' must be 2-D");
  check_indices("embedding", indices);
  check_same_device(kName, weight.device(), indices);
  const CurrentDevice current(weight.device());
  const at::Tensor places = indices.contiguous();
  c10::DimVector sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  at::Tensor output = make_output(sizes, {}, weight.options());
  launch_raw(kName, weight.device(), &raw::embedding,
             raw::EmbeddingArguments{kernel_address(weight),
                                     {weight.stride(0), weight.stride(1)},
                                     kernel_address(places),
                                     *raw_type(places.scalar_type()),
                                     mutable_kernel_address(output),
                                     weight.element_size(),
                                     places.numel(),
                                     weight.size(0),
                                     weight.size(1)},
             reads(weight, places), writes(output));
  return output;
}

at::Tensor embedding_dense_backward(const at::Tensor& grad_output, const at::Tensor& indices, int64_t num_weights,
                                    int64_t padding_idx, bool scale_grad_by_freq) {
  constexpr const char* kName = "aten::embedding_dense_backward";
  check_indices("embedding_backward", indices);
  check_same_device(kName, grad_output.device(), indices);
  const std::optional<raw::Type> type = raw_type(grad_output.scalar_type());
  TORCH_CHECK_NOT_IMPLEMENTED(type.has_value() && raw::embedding_backward_serves(*type),
                              "\"embedding_backward\" not implemented for '", grad_output.scalar_type(), "'");
  const CurrentDevice current(grad_output.device());
  const int64_t width = grad_output.size(-1);
  const at::Tensor places = indices.contiguous();
  const at::Tensor gradient = grad_output.contiguous();
  TORCH_CHECK(gradient.numel() == places.numel() * width, kName, ": a gradient of shape ", grad_output.sizes(),
              " does not fit indices of shape ", indices.sizes());
  at::Tensor result = make_output({num_weights, width}, {}, grad_output.options());
  launch_raw(kName, gradient.device(), &raw::embedding_backward,
             raw::EmbeddingBackwardArguments{*type, kernel_address(gradient), kernel_address(places),
                                             *raw_type(places.scalar_type()), mutable_kernel_address(result),
                                             places.numel(), num_weights, width, padding_idx, scale_grad_by_freq},
             reads(gradient, places), writes(result));
  return result;
}

at::Tensor& embedding_renorm(at::Tensor& self, const at::Tensor& indices, double max_norm, double norm_type) {
  OPENREG_CHECK_IMPLEMENTED_SINCE_15(
      self.is_floating_point() || self.is_complex(),
      "embedding_renorm_: the norm of a row needs floating-point or complex numbers, but got ", self.scalar_type());
  return InplaceLaunch<at::_ops::embedding_renorm_>::call<at::cpu::embedding_renorm_>(self, indices, max_norm,
                                                                                      norm_type);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("embedding", TORCH_FN(embedding));
  library.impl("embedding_dense_backward", TORCH_FN(embedding_dense_backward));
  library.impl("embedding_renorm_", TORCH_FN(embedding_renorm));
}

}  // namespace

}  // namespace openreg::ops
