// SPDX-License-Identifier: BSD-3-Clause
// Custom operators. pocket::cube is complete in this file: schema, kernels, shapes, gradient.
// pocket::soft_step has schema and kernel here; operators.py adds its gradient and its shapes from Python.
#include <ATen/Dispatch.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "dtypes.h"
#include "launch.h"

namespace pocket {

namespace {

// Makes an output of x's shape and launches output[i] = function(x[i], y[i]).
template <class Function>
at::Tensor elementwise(const char* name, const at::Tensor& x, const at::Tensor& y, Function function) {
  check_dtype(name, x.scalar_type(), is_float);
  TORCH_CHECK(x.scalar_type() == y.scalar_type() && x.sizes() == y.sizes(), name,
              ": expected tensors of one dtype and shape, got ", x.scalar_type(), x.sizes(), " and ", y.scalar_type(),
              y.sizes());
  TORCH_CHECK(x.device() == y.device(), name, ": expected tensors on one device, got ", x.device(), " and ",
              y.device());
  const c10::DeviceGuard guard(x.device());
  const at::Tensor first = x.contiguous(), second = y.contiguous();
  at::Tensor output = at::empty_like(first);
  launch(x.device(), [function, a = host_view(first), b = host_view(second), out = host_view(output)] {
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, a.scalar_type(), "pocket", [&] {
      const auto* from = a.const_data_ptr<scalar_t>();
      const auto* with = b.const_data_ptr<scalar_t>();
      auto* to = out.mutable_data_ptr<scalar_t>();
      for (int64_t i = 0; i < a.numel(); ++i) {
        to[i] = static_cast<scalar_t>(function(static_cast<double>(from[i]), static_cast<double>(with[i])));
      }
    });
  });
  return output;
}

at::Tensor cube(const at::Tensor& x) {
  return elementwise("pocket::cube", x, x, [](double value, double) { return value * value * value; });
}

at::Tensor cube_backward(const at::Tensor& grad, const at::Tensor& x) {
  return elementwise("pocket::cube_backward", grad, x, [](double g, double value) { return 3 * value * value * g; });
}

at::Tensor soft_step(const at::Tensor& x) {
  return elementwise("pocket::soft_step", x, x, [](double value, double) { return value / (1 + std::abs(value)); });
}

// Calls an operator through the dispatcher, which selects the kernel of the tensor's device.
template <class... Tensors>
at::Tensor call(const char* name, const Tensors&... tensors) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  return op.template typed<at::Tensor(const Tensors&...)>().call(tensors...);
}

struct Cube final : torch::autograd::Function<Cube> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    const at::AutoDispatchBelowADInplaceOrView below;  // from here on the kernel, not autograd again
    return call("pocket::cube", x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    return {call("pocket::cube_backward", grads[0], context->get_saved_variables()[0])};
  }
};

at::Tensor cube_autograd(const at::Tensor& x) {
  return Cube::apply(x);
}

// Meta functions: the result without values, for torch.compile and torch.export. Its strides have to be right, too.
at::Tensor like_input(const at::Tensor& x) {
  return at::empty_like(x, x.options(), c10::MemoryFormat::Contiguous);
}

at::Tensor like_gradient(const at::Tensor& grad, const at::Tensor& /*x*/) {
  return at::empty_like(grad, grad.options(), c10::MemoryFormat::Contiguous);
}

TORCH_LIBRARY_FRAGMENT(pocket, library) {
  library.def("cube(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
  library.def("cube_backward(Tensor grad, Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
  library.def("soft_step(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(pocket, PrivateUse1, library) {
  library.impl("cube", TORCH_FN(cube));
  library.impl("cube_backward", TORCH_FN(cube_backward));
  library.impl("soft_step", TORCH_FN(soft_step));
}

TORCH_LIBRARY_IMPL(pocket, AutogradPrivateUse1, library) {
  library.impl("cube", TORCH_FN(cube_autograd));
}

TORCH_LIBRARY_IMPL(pocket, Meta, library) {
  library.impl("cube", TORCH_FN(like_input));
  library.impl("cube_backward", TORCH_FN(like_gradient));
}

}  // namespace

}  // namespace pocket
