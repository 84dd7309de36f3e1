// SPDX-License-Identifier: BSD-3-Clause
// Random numbers of continuous distributions: our own kernels on the Philox generator, because a CPU kernel would draw
// from a CPU generator, one number after the other. rand(), randn() and the initialisers of torch.nn are built on
// these.
#include <ATen/native/DistributionTemplates.h>

#include "common/raw_operands.h"
#include "declare/declare.h"
#include "distributions/fill.h"
#include "kernels/distributions.h"
#include "kernels/uniform.h"

namespace openreg::ops {

namespace {

using runtime::Generator;
namespace templates = at::native::templates;

constexpr Operator kUniform{"aten::uniform_"};
constexpr Operator kNormal{"aten::normal_"};
constexpr Operator kLogNormal{"aten::log_normal_"};
constexpr Operator kExponential{"aten::exponential_"};
constexpr Operator kCauchy{"aten::cauchy_"};
constexpr Operator kGamma{"aten::_standard_gamma"};
constexpr Operator kDirichlet{"aten::_sample_dirichlet"};

template <class>
struct UniformKernel {
  void operator()(at::TensorIterator& iterator, double from, double to, const MaybeGenerator& generator) const {
    const at::Tensor& self = iterator.tensor(0);
    require_dtype(raw::contains(raw::Floats(), self.scalar_type()), "uniform_", self.scalar_type());
    const runtime::PhiloxState state = reserve_random(kUniform.name, self, generator);
    const raw::UniformArguments arguments{self.scalar_type(), mutable_kernel_address(self),
                                          merged_axes<1>(self.sizes(), {self.strides()}, AxisOrder::kByIndex), from,
                                          to};
    const RawOperands operands(writes(self));
    auto draw = [state, arguments] { raw::uniform(arguments, state.seed(), state.offset()); };
    runtime::launch(kUniform.name, self.device().index(), std::move(draw), operands.get());
  }
};

at::Tensor& uniform_(at::Tensor& self, double from, double to, MaybeGenerator generator) {
  return templates::uniform_impl_<UniformKernel, Generator>(self, from, to, std::move(generator));
}

at::Tensor& normal_(at::Tensor& self, double mean, double deviation, MaybeGenerator generator) {
  using Normal = Filling<kNormal, kFloating, &kernels::normal>;
  return templates::normal_impl_<Normal::By, Generator>(self, mean, deviation, std::move(generator));
}

at::Tensor& log_normal_(at::Tensor& self, double mean, double deviation, MaybeGenerator generator) {
  using LogNormal = Filling<kLogNormal, kFloating, &kernels::log_normal>;
  return templates::log_normal_impl_<LogNormal::By, Generator>(self, mean, deviation, std::move(generator));
}

at::Tensor& exponential_(at::Tensor& self, double lambda, MaybeGenerator generator) {
  using Exponential = Filling<kExponential, kFloating, &kernels::exponential>;
  TORCH_CHECK(at::isFloatingType(self.scalar_type()),
              "exponential_: the distribution is continuous, so the dtype has to be a floating one, but got ",
              self.scalar_type());
  return templates::exponential_impl_<Exponential::By, Generator>(self, lambda, std::move(generator));
}

at::Tensor& cauchy_(at::Tensor& self, double median, double sigma, MaybeGenerator generator) {
  using Cauchy = Filling<kCauchy, kFloating, &kernels::cauchy>;
  return templates::cauchy_impl_<Cauchy::By, Generator>(self, median, sigma, std::move(generator));
}

// Standard normal numbers by normal_() itself; PyTorch's templates scale and shift them afterwards.
template <class>
struct NormalByOperator {
  void operator()(at::Tensor& self, double mean, double deviation, const MaybeGenerator& generator) const {
    self.normal_(mean, deviation, generator);
  }
};

// Normal numbers whose mean or deviation, or both, are tensors. PyTorch's templates know nothing of devices.
template <class Mean, class Deviation>
at::Tensor normal(Mean mean, Deviation deviation, MaybeGenerator generator) {
  if constexpr (std::is_same_v<Mean, Deviation>) {
    check_same_device("aten::normal", mean.device(), deviation);
  }
  return templates::normal_impl<NormalByOperator, Generator>(mean, deviation, std::move(generator));
}
template <class Mean, class Deviation>
at::Tensor& normal_out(Mean mean, Deviation deviation, MaybeGenerator generator, at::Tensor& out) {
  if constexpr (std::is_same_v<Mean, Deviation>) {
    check_same_device("aten::normal", mean.device(), deviation);
  }
  return templates::normal_out_impl<NormalByOperator, Generator>(out, mean, deviation, std::move(generator));
}

// Numbers of the operand's shape and dtype by a sampler with a parameter per element. `distribution` is its name in the
// message of a dtype that does not do.
at::Tensor sample(const Operator& op, const char* distribution,
                  void (*kernel)(const at::Tensor&, at::Tensor&, runtime::PhiloxState), const at::Tensor& parameter,
                  const MaybeGenerator& generator) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(parameter.scalar_type()), '"', distribution,
                              "\" not implemented for '", parameter.scalar_type(),
                              "'; convert the concentration with .float()");
  const OperandsDevice device(op, parameter);
  at::Tensor out = make_output(parameter.sizes(), {}, parameter.options());
  launch(op, device, kernel, parameter, out, reserve_random(generator, device.index(), kernels::kSamplerSteps));
  return out;
}

at::Tensor standard_gamma(const at::Tensor& self, MaybeGenerator generator) {
  return sample(kGamma, "gamma", &kernels::gamma, self, generator);
}

at::Tensor sample_dirichlet(const at::Tensor& self, MaybeGenerator generator) {
  return sample(kDirichlet, "dirichlet", &kernels::dirichlet, self, generator);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::uniform_>(library, uniform_);
  function<op::normal_>(library, normal_);
  function<op::log_normal_>(library, log_normal_);
  function<op::exponential_>(library, exponential_);
  function<op::cauchy_>(library, cauchy_);
  function<op::normal_Tensor_float>(library, normal);
  function<op::normal_Tensor_float_out>(library, normal_out);
  function<op::normal_float_Tensor>(library, normal);
  function<op::normal_float_Tensor_out>(library, normal_out);
  function<op::normal_Tensor_Tensor>(library, normal);
  function<op::normal_Tensor_Tensor_out>(library, normal_out);
  function<op::_standard_gamma>(library, standard_gamma);
  function<op::_sample_dirichlet>(library, sample_dirichlet);
}

}  // namespace

}  // namespace openreg::ops
