// SPDX-License-Identifier: BSD-3-Clause
// Random numbers of continuous distributions. The kernels are our own and use the Philox generator, because a CPU
// kernel would draw from a CPU generator, one number after another. The initializers of torch.nn, rand() and randn()
// call these operators.
#include <ATen/native/DistributionTemplates.h>

#include "kernels/distributions.h"
#include "kernels/uniform.h"
#include "launch/raw_operands.h"
#include "operators/distributions/fill.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

using runtime::Generator;
namespace templates = at::native::templates;

constexpr Operator kUniform{"aten::uniform_", kChecked};
constexpr Operator kNormal{"aten::normal_", kChecked};
constexpr Operator kLogNormal{"aten::log_normal_", kChecked};
constexpr Operator kExponential{"aten::exponential_", kChecked};
constexpr Operator kCauchy{"aten::cauchy_", kChecked};
constexpr Operator kGamma{"aten::_standard_gamma", kChecked};
constexpr Operator kDirichlet{"aten::_sample_dirichlet", kChecked};

using Normal = Filling<kNormal, kFloating, &kernels::normal>;
using LogNormal = Filling<kLogNormal, kFloating, &kernels::log_normal>;
using Exponential = Filling<kExponential, kFloating, &kernels::exponential>;
using Cauchy = Filling<kCauchy, kFloating, &kernels::cauchy>;

template <class>
struct UniformKernel {
  void operator()(at::TensorIterator& iterator, double from, double to, const MaybeGenerator& generator) const {
    const at::Tensor& self = iterator.tensor(0);
    require_dtype(raw::contains(raw::Floats(), self.scalar_type()), "uniform_", self.scalar_type());
    const runtime::PhiloxState state = reserve_random(kUniform.name, self, generator);
    const raw::UniformArguments arguments{self.scalar_type(), mutable_kernel_address(self),
                                          merged_axes<1>(self.sizes(), {self.strides()}, AxisOrder::kByIndex), from,
                                          to};
    const RawOperands operands(kUniform.name, writes(self));
    auto draw = [state, arguments] { raw::uniform(arguments, state.seed(), state.offset()); };
    runtime::launch(kUniform.name, self.device().index(), std::move(draw), operands.get());
  }
};

at::Tensor& exponential_(at::Tensor& self, double lambda, MaybeGenerator generator) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()),
              "exponential_: the distribution is continuous, so the dtype has to be a floating one, but got ",
              self.scalar_type());
  return templates::exponential_impl_<Exponential::By, Generator>(self, lambda, std::move(generator));
}

// A kernel for PyTorch's templates that draws by the operator normal_(). The templates request standard normal numbers,
// and then scale and shift them.
template <class>
struct NormalByOperator {
  void operator()(at::Tensor& self, double mean, double deviation, const MaybeGenerator& generator) const {
    self.normal_(mean, deviation, generator);
  }
};

// Return normal numbers whose mean or deviation, or both, are tensors. They check the devices, because PyTorch's
// templates do not.
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

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::uniform_>(library, templates::uniform_impl_<UniformKernel, Generator>);
  function<op::normal_>(library, templates::normal_impl_<Normal::By, Generator>);
  function<op::log_normal_>(library, templates::log_normal_impl_<LogNormal::By, Generator>);
  function<op::exponential_>(library, exponential_);
  function<op::cauchy_>(library, templates::cauchy_impl_<Cauchy::By, Generator>);
  function<op::normal_Tensor_float>(library, normal);
  function<op::normal_Tensor_float_out>(library, normal_out);
  function<op::normal_float_Tensor>(library, normal);
  function<op::normal_float_Tensor_out>(library, normal_out);
  function<op::normal_Tensor_Tensor>(library, normal);
  function<op::normal_Tensor_Tensor_out>(library, normal_out);
  function<op::_standard_gamma>(library, sample<kGamma, &kernels::gamma>);
  function<op::_sample_dirichlet>(library, sample<kDirichlet, &kernels::dirichlet>);
}

}  // namespace

}  // namespace openreg::ops
