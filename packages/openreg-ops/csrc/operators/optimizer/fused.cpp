// SPDX-License-Identifier: BSD-3-Clause
// Fused optimizer steps, with one launch for all parameters of a group (torch.optim with fused=True). SGD runs our own
// kernel if OPENREG_KERNELS=raw selects it. It always does for 16-bit floats in a release of PyTorch whose CPU kernel
// computes those wrongly.
//
// The kernels traverse the memory of a parameter, its gradient and its state in parallel. So all of these must be dense
// and have one order of elements in memory. A dense tensor in another order is copied to the parameter's order. An
// example is a contiguous gradient of a parameter in channels-last format. PyTorch's CPU kernels do not check this, and
// would pair wrong elements. CUDA's kernels reject tensors that are not dense or have another order.
#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "kernels/sgd.h"
#include "launch/raw_operands.h"
#include "registration/declare.h"
#include "support/kernel_choice.h"
#include "support/torch_versions.h"

namespace openreg::ops {

namespace {

// Checks of a step's operands. Each throws c10::Error, with the operator, the operand and what is accepted.
class StepOperandChecks {
 public:
  StepOperandChecks(const char* name, at::TensorList parameters) : name_(name), parameters_(parameters) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      TORCH_CHECK_NOT_IMPLEMENTED((dtype_bit(parameters[i].scalar_type()) & kFloating) != 0, name,
                                  ": not implemented for '", parameters[i].scalar_type(),
                                  "', only for parameters of float16, bfloat16, float32 and float64");
      check_like("self", i, parameters[i], parameters[i]);
    }
  }

  // Requires a list with a dense tensor for each parameter, of its shape, and of the group's dtype and device.
  const StepOperandChecks& per_parameter(const char* what, at::TensorList list) const {
    check_count(what, list);
    for (size_t i = 0; i < list.size(); ++i) {
      check_like(what, i, list[i], parameters_[i]);
    }
    return *this;
  }

  // Same as `per_parameter()` if `wanted`. Otherwise nothing reads the list, and it may be empty.
  const StepOperandChecks& per_parameter_if(bool wanted, const char* what, at::TensorList list) const {
    return wanted || !list.empty() ? per_parameter(what, list) : *this;
  }

  // Requires a list with a number for each parameter: the count of its steps.
  const StepOperandChecks& steps(const char* what, at::TensorList list) const {
    check_count(what, list);
    for (size_t i = 0; i < list.size(); ++i) {
      TORCH_CHECK(list[i].numel() == 1 && list[i].device() == parameters_[i].device(), name_, ": ", what, "[", i,
                  "] has the shape ", list[i].sizes(), " and is on ", list[i].device(),
                  ", but has to be one number on the device of the parameter, ", parameters_[i].device(),
                  "; move it there with .to()");
    }
    return *this;
  }

  // Requires a learning rate, which may be a number on the host.
  const StepOperandChecks& rate(double /*rate*/) const { return *this; }
  const StepOperandChecks& rate(const at::Tensor& rate) const {
    TORCH_CHECK(rate.numel() == 1 &&
                    (rate.device().is_cpu() || parameters_.empty() || rate.device() == parameters_[0].device()),
                name_, ": lr has the shape ", rate.sizes(), " and is on ", rate.device(),
                ", but has to be one number on the host or on the device of the parameters; move it with .to()");
    return *this;
  }

  // Requires the tensors that torch.amp.GradScaler passes, or none.
  const StepOperandChecks& scaling(MaybeTensor grad_scale, MaybeTensor found_inf) const {
    check_number("grad_scale", grad_scale);
    check_number("found_inf", found_inf);
    return *this;
  }

 private:
  void check_count(const char* what, at::TensorList list) const {
    TORCH_CHECK(list.size() == parameters_.size(), name_, ": ", what, " has ", list.size(),
                " tensors, but has to have one for each of the ", parameters_.size(), " parameters");
  }

  void check_like(const char* what, size_t index, const at::Tensor& tensor, const at::Tensor& parameter) const {
    const at::Tensor& first = parameters_[0];
    TORCH_CHECK(tensor.sizes() == parameter.sizes() && tensor.scalar_type() == first.scalar_type() &&
                    tensor.device() == first.device(),
                name_, ": ", what, "[", index, "] has the shape ", tensor.sizes(), ", the type ", tensor.scalar_type(),
                " and the device ", tensor.device(), ", but has to have the shape of its parameter, ",
                parameter.sizes(), ", and the type and the device of all parameters of the group, ",
                first.scalar_type(), " and ", first.device(),
                "; make groups of one type and device, or construct the optimizer without fused=True");
    TORCH_CHECK(tensor.is_non_overlapping_and_dense(), name_, " on ", tensor.device(), ": ", what, "[", index,
                "] has the shape ", tensor.sizes(), " and the strides ", tensor.strides(),
                ", but has to be dense, without elements that share memory and without gaps; pass a copy, as "
                ".contiguous() makes it, or construct the optimizer without fused=True");
  }

  void check_number(const char* what, MaybeTensor number) const {
    TORCH_CHECK(!is_given(number) || parameters_.empty() ||
                    (number->numel() == 1 && number->scalar_type() == at::kFloat &&
                     number->device() == parameters_[0].device()),
                name_, ": ", what, " has to be one float32 on the device of the parameters, but has the shape ",
                number->sizes(), ", the type ", number->scalar_type(), " and the device ", number->device(),
                "; torch.amp.GradScaler passes such tensors");
  }

  const char* name_;
  at::TensorList parameters_;
};

// Checks the operands of Adam and AdamW.
template <class Op, class Rate>
void check_adam(at::TensorList self, at::TensorList grads, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
                at::TensorList max_exp_avg_sqs, at::TensorList state_steps, Rate lr, double /*beta1*/, double /*beta2*/,
                double /*weight_decay*/, double /*eps*/, bool amsgrad, bool /*maximize*/, MaybeTensor grad_scale,
                MaybeTensor found_inf) {
  StepOperandChecks(Op::name, self)
      .per_parameter("grads", grads)
      .per_parameter("exp_avgs", exp_avgs)
      .per_parameter("exp_avg_sqs", exp_avg_sqs)
      .per_parameter_if(amsgrad, "max_exp_avg_sqs", max_exp_avg_sqs)
      .steps("state_steps", state_steps)
      .rate(lr)
      .scaling(grad_scale, found_inf);
}

template <class Op, class Rate>
void check_adagrad(at::TensorList self, at::TensorList grads, at::TensorList state_sums, at::TensorList state_steps,
                   Rate lr, double /*lr_decay*/, double /*weight_decay*/, double /*eps*/, bool /*maximize*/,
                   MaybeTensor grad_scale, MaybeTensor found_inf) {
  StepOperandChecks(Op::name, self)
      .per_parameter("grads", grads)
      .per_parameter("state_sums", state_sums)
      .steps("state_steps", state_steps)
      .rate(lr)
      .scaling(grad_scale, found_inf);
}

template <class Op, class Rate>
void check_sgd(at::TensorList self, at::TensorList grads, at::TensorList momenta, double /*weight_decay*/,
               double momentum, Rate lr, double /*dampening*/, bool /*nesterov*/, bool /*maximize*/,
               bool /*is_first_step*/, MaybeTensor grad_scale, MaybeTensor found_inf) {
  StepOperandChecks(Op::name, self)
      .per_parameter("grads", grads)
      .per_parameter_if(momentum != 0, "momentum_buffer_list", momenta)
      .rate(lr)
      .scaling(grad_scale, found_inf);
}

// Returns true if the elements of two dense tensors of one shape have one order in memory.
bool has_same_layout(const at::Tensor& tensor, const at::Tensor& other) {
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    if (tensor.size(i) != 1 && tensor.stride(i) != other.stride(i)) {
      return false;
    }
  }
  return true;
}

// An argument of a step. Tensors of a list are replaced by copies if they do not have the parameters' order in memory.
template <class T>
class MatchedLayout {
 public:
  MatchedLayout(at::TensorList /*parameters*/, T argument) : argument_(argument) {}
  T get() const { return argument_; }
  void put_back() const {}

 private:
  T argument_;
};
template <>
class MatchedLayout<at::TensorList> {
 public:
  MatchedLayout(at::TensorList parameters, at::TensorList given) : given_(given) {
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i].dim() == parameters[i].dim() && !has_same_layout(given[i], parameters[i])) {
        if (copies_.empty()) {
          copies_ = given.vec();
        }
        copies_[i] = make_output(given[i].sizes(), parameters[i].strides(), given[i].options());
        copies_[i].copy_(given[i]);
      }
    }
  }
  at::TensorList get() const { return copies_.empty() ? given_ : at::TensorList(copies_); }
  // Copies the copies back, because the step may have written to them: it also unscales gradients.
  void put_back() const {
    for (size_t i = 0; i < copies_.size(); ++i) {
      if (!copies_[i].is_same(given_[i])) {
        given_[i].copy_(copies_[i]);
      }
    }
  }

 private:
  at::TensorList given_;
  std::vector<at::Tensor> copies_;
};

// Checks the operands, and makes the step on tensors that have the parameters' order in memory.
template <auto kCheck, auto& kStep, class... Args>
void step(at::TensorList self, Args... args) {
  kCheck(self, args...);
  if (self.empty()) {
    return;
  }
  const CurrentDeviceGuard current(self[0].device());
  const std::tuple<MatchedLayout<Args>...> in_order{MatchedLayout<Args>(self, args)...};
  std::apply([&](const auto&... argument) { kStep(self, argument.get()...); }, in_order);
  std::apply([](const auto&... argument) { (argument.put_back(), ...); }, in_order);
}

// Returns an argument of the overload whose learning rate is a number.
template <class T>
const T& as_number(const T& argument) {
  return argument;
}
double as_number(const at::Tensor& rate) {
  return rate.item<double>();
}

template <class T>
bool is_on_host(const T& /*no_rate*/) {
  return false;
}
bool is_on_host(const at::Tensor& rate) {
  return rate.device().is_cpu();
}

// The step of the overload whose learning rate is a tensor. Reads a rate on the host now, because the caller may change
// it before the kernel runs.
template <auto& kByNumber, auto& kByTensor>
constexpr auto by_rate = [](const auto&... arguments) {
  if ((is_on_host(arguments) || ...)) {
    kByNumber(as_number(arguments)...);
  } else {
    kByTensor(arguments...);
  }
};

const auto kAdam = unstructured_overload<unchecked, op::_fused_adam_>(cpu::_fused_adam_);
const auto kAdamTensorLr = unstructured_overload<unchecked, op::_fused_adam__tensor_lr>(cpu::_fused_adam_);
const auto kAdamW = unstructured_overload<unchecked, op::_fused_adamw_>(cpu::_fused_adamw_);
const auto kAdamWTensorLr = unstructured_overload<unchecked, op::_fused_adamw__tensor_lr>(cpu::_fused_adamw_);
const auto kAdagrad = unstructured_overload<unchecked, op::_fused_adagrad_>(cpu::_fused_adagrad_);
const auto kAdagradTensorLr = unstructured_overload<unchecked, op::_fused_adagrad__tensor_lr>(cpu::_fused_adagrad_);

const float* address_of(MaybeTensor number) {
  return number.has_value() ? static_cast<const float*>(kernel_address(*number)) : nullptr;
}

const bool kEveryType = raw_kernels_chosen();

// Returns true if our own kernel must run instead of PyTorch's.
bool is_ours(at::ScalarType type) {
  return kEveryType || (OPENREG_TORCH_SGD_SKIPS_16_BITS && at::isReducedFloatingType(type));
}

// Launches our own kernel and returns true, or returns false if PyTorch's kernel must run. `given_rate` is a learning
// rate on the device, which replaces that of `arguments`.
bool launch_sgd(at::TensorList self, at::TensorList grads, at::TensorList momenta, raw::SgdArguments arguments,
                MaybeTensor given_rate, MaybeTensor scale, MaybeTensor found_inf) {
  if (!is_ours(self[0].scalar_type())) {
    return false;
  }
  const c10::Device device = self[0].device();
  std::optional<at::Tensor> learning_rate;
  if (given_rate.has_value()) {
    learning_rate = given_rate->to(at::kFloat);  // the dtype that the kernel reads
  }
  arguments.type = self[0].scalar_type();
  arguments.learning_rate_address = address_of(learning_rate);
  arguments.scale = address_of(scale);
  arguments.found_inf = address_of(found_inf);
  arguments.parameters.reserve(self.size());
  const bool has_momentum = arguments.momentum != 0 && !momenta.empty();
  for (size_t i = 0; i < self.size(); ++i) {
    arguments.parameters.push_back({mutable_kernel_address(self[i]), mutable_kernel_address(grads[i]),
                                    has_momentum ? mutable_kernel_address(momenta[i]) : nullptr, self[i].numel()});
  }
  launch_raw("aten::_fused_sgd_", device, &raw::sgd, std::move(arguments), updates(self, grads, momenta),
             reads(learning_rate, scale, found_inf));
  return true;
}

raw::SgdArguments numbers(double weight_decay, double momentum, double learning_rate, double dampening, bool nesterov,
                          bool maximize, bool is_first_step) {
  return {.learning_rate = learning_rate,
          .momentum = momentum,
          .dampening = dampening,
          .weight_decay = weight_decay,
          .nesterov = nesterov,
          .maximize = maximize,
          .first_step = is_first_step};
}

const auto kSgd = unstructured_overload<unchecked, op::_fused_sgd_>(cpu::_fused_sgd_);
const auto kSgdTensorLr = unstructured_overload<unchecked, op::_fused_sgd__tensor_lr>(cpu::_fused_sgd_);

void sgd(at::TensorList self, at::TensorList grads, at::TensorList momenta, double weight_decay, double momentum,
         double lr, double dampening, bool nesterov, bool maximize, bool is_first_step, MaybeTensor grad_scale,
         MaybeTensor found_inf) {
  const auto arguments = numbers(weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step);
  if (!launch_sgd(self, grads, momenta, arguments, std::nullopt, grad_scale, found_inf)) {
    kSgd(self, grads, momenta, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale,
         found_inf);
  }
}

void sgd_tensor_lr(at::TensorList self, at::TensorList grads, at::TensorList momenta, double weight_decay,
                   double momentum, const at::Tensor& lr, double dampening, bool nesterov, bool maximize,
                   bool is_first_step, MaybeTensor grad_scale, MaybeTensor found_inf) {
  const auto arguments =
      numbers(weight_decay, momentum, /*learning_rate=*/0, dampening, nesterov, maximize, is_first_step);
  if (!launch_sgd(self, grads, momenta, arguments, lr, grad_scale, found_inf)) {
    kSgdTensorLr(self, grads, momenta, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step,
                 grad_scale, found_inf);
  }
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::_fused_adam_>(library, step<check_adam<op::_fused_adam_, double>, kAdam>);
  function<op::_fused_adam__tensor_lr>(
      library, step<check_adam<op::_fused_adam__tensor_lr, const at::Tensor&>, by_rate<kAdam, kAdamTensorLr>>);
  function<op::_fused_adamw_>(library, step<check_adam<op::_fused_adamw_, double>, kAdamW>);
  function<op::_fused_adamw__tensor_lr>(
      library, step<check_adam<op::_fused_adamw__tensor_lr, const at::Tensor&>, by_rate<kAdamW, kAdamWTensorLr>>);
  function<op::_fused_adagrad_>(library, step<check_adagrad<op::_fused_adagrad_, double>, kAdagrad>);
  function<op::_fused_adagrad__tensor_lr>(
      library,
      step<check_adagrad<op::_fused_adagrad__tensor_lr, const at::Tensor&>, by_rate<kAdagrad, kAdagradTensorLr>>);
  function<op::_fused_sgd_>(library, step<check_sgd<op::_fused_sgd_, double>, sgd>);
  function<op::_fused_sgd__tensor_lr>(
      library, step<check_sgd<op::_fused_sgd__tensor_lr, const at::Tensor&>, by_rate<sgd, sgd_tensor_lr>>);
}

}  // namespace

}  // namespace openreg::ops
