// SPDX-License-Identifier: BSD-3-Clause
// Mechanism: a derivative by a hand-written node of the autograd graph, as in the code that PyTorch generates for its
// operators. It connects openreg::swiglu with openreg::swiglu_backward. autograd_function.cpp needs less code.
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/sigmoid.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/library.h>

namespace openreg::ops {

namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;

// Calls through the dispatcher, so that the keys above the kernels (autograd, fake tensors, tracing) take part.
at::Tensor call_forward(const at::Tensor& gate, const at::Tensor& up) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("openreg::swiglu", "")
                             .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
  return op.call(gate, up);
}

Pair call_backward(const at::Tensor& grad, const at::Tensor& gate, const at::Tensor& up) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("openreg::swiglu_backward", "")
                             .typed<Pair(const at::Tensor&, const at::Tensor&, const at::Tensor&)>();
  return op.call(grad, gate, up);
}

struct SwigluBackward final : torch::autograd::Node {
  SwigluBackward(const at::Tensor& gate, const at::Tensor& up) : gate_(gate, false), up_(up, false) {
    set_next_edges(torch::autograd::collect_next_edges(gate, up));
  }

  std::string name() const override { return "SwigluBackward"; }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!grads[0].defined()) {
      return {at::Tensor(), at::Tensor()};
    }
    const auto [grad_gate, grad_up] = call_backward(grads[0], gate_.unpack(), up_.unpack());
    return {should_compute_output(0) ? grad_gate : at::Tensor(), should_compute_output(1) ? grad_up : at::Tensor()};
  }

  // Releases the saved tensors; autograd calls it after backward() without retain_graph.
  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    gate_.reset_data();
    up_.reset_data();
  }

 private:
  torch::autograd::SavedVariable gate_;
  torch::autograd::SavedVariable up_;
};

template <class... Tensors>
void refuse_forward_mode(const Tensors&... tensors) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !(tensors._fw_grad(0).defined() || ...),
      "openreg::swiglu has no forward-mode derivative; use torch.nn.functional.silu(gate) * up");
}

at::Tensor swiglu_autograd(const at::Tensor& gate, const at::Tensor& up) {
  refuse_forward_mode(gate, up);
  c10::intrusive_ptr<SwigluBackward> node;
  if (torch::autograd::compute_requires_grad(gate, up)) {
    node = c10::make_intrusive<SwigluBackward>(gate, up);
  }
  at::Tensor output;
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    output = call_forward(gate, up);
  }
  if (node) {
    torch::autograd::set_history(output, node);
  }
  return output;
}

// Computes the backward with PyTorch's operators if it has to be differentiated itself, because they have derivatives.
Pair swiglu_backward_autograd(const at::Tensor& grad, const at::Tensor& gate, const at::Tensor& up) {
  refuse_forward_mode(grad, gate, up);
  if (torch::autograd::compute_requires_grad(grad, gate, up)) {
    const at::Tensor sigmoid = at::sigmoid(gate);
    return {grad * up * sigmoid * (gate * (1 - sigmoid) + 1), grad * gate * sigmoid};
  }
  const at::AutoDispatchBelowADInplaceOrView guard;
  return call_backward(grad, gate, up);
}

TORCH_LIBRARY_IMPL(openreg, AutogradPrivateUse1, library) {
  library.impl("swiglu", TORCH_FN(swiglu_autograd));
  library.impl("swiglu_backward", TORCH_FN(swiglu_backward_autograd));
}

}  // namespace

}  // namespace openreg::ops
