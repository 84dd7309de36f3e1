// SPDX-License-Identifier: BSD-3-Clause
// Mechanism: a derivative by torch::autograd::Function, which creates the node of the graph. forward() saves what
// backward() needs. The operator, openreg::add_rms_norm, is in operators/normalization/add_rms_norm.cpp.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace openreg::ops {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;
using Pair = std::tuple<at::Tensor, at::Tensor>;

Pair call_forward(const at::Tensor& input, const at::Tensor& residual, const at::Tensor& weight, double eps) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("openreg::add_rms_norm", "")
                             .typed<Pair(const at::Tensor&, const at::Tensor&, const at::Tensor&, double)>();
  return op.call(input, residual, weight, eps);
}

Pair call_backward(const at::Tensor& grad_output, const at::Tensor& grad_sum, const at::Tensor& sum,
                   const at::Tensor& weight, double eps) {
  using Schema = Pair(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, double);
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("openreg::add_rms_norm_backward", "").typed<Schema>();
  return op.call(grad_output, grad_sum, sum, weight, eps);
}

// The derivative, which has no derivative itself: a second backward throws, instead of returning zeros.
struct AddRmsNormBackward : Function<AddRmsNormBackward> {
  static variable_list forward(AutogradContext* /*context*/, const at::Tensor& grad_output, const at::Tensor& grad_sum,
                               const at::Tensor& sum, const at::Tensor& weight, double eps) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto [grad_input, grad_weight] = call_backward(grad_output, grad_sum, sum, weight, eps);
    return {grad_input, grad_weight};
  }

  static variable_list backward(AutogradContext* /*context*/, const variable_list& /*grads*/) {
    TORCH_CHECK_NOT_IMPLEMENTED(false,
                                "openreg::add_rms_norm can be differentiated once, not twice; for second derivatives "
                                "use torch.nn.functional.rms_norm(input + residual, ...)");
  }
};

struct AddRmsNorm : Function<AddRmsNorm> {
  static variable_list forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& residual,
                               const at::Tensor& weight, double eps) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto [output, sum] = call_forward(input, residual, weight, eps);
    context->save_for_backward({sum, weight});
    context->saved_data["eps"] = eps;
    return {output, sum};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const auto [grad_input, grad_weight] =
        call_backward(grads[0], grads[1], saved[0], saved[1], context->saved_data["eps"].toDouble());
    return {grad_input, grad_input, grad_weight, at::Tensor()};
  }
};

Pair add_rms_norm_autograd(const at::Tensor& input, const at::Tensor& residual, const at::Tensor& weight, double eps) {
  const variable_list results = AddRmsNorm::apply(input, residual, weight, eps);
  return {results[0], results[1]};
}

Pair add_rms_norm_backward_autograd(const at::Tensor& grad_output, const at::Tensor& grad_sum, const at::Tensor& sum,
                                    const at::Tensor& weight, double eps) {
  const variable_list results = AddRmsNormBackward::apply(grad_output, grad_sum, sum, weight, eps);
  return {results[0], results[1]};
}

TORCH_LIBRARY_IMPL(openreg, AutogradPrivateUse1, library) {
  library.impl("add_rms_norm", TORCH_FN(add_rms_norm_autograd));
  library.impl("add_rms_norm_backward", TORCH_FN(add_rms_norm_backward_autograd));
}

}  // namespace

}  // namespace openreg::ops
