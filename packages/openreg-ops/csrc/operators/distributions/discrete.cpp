// SPDX-License-Identifier: BSD-3-Clause
// Random numbers of discrete distributions, and random choices. randint() and randperm() call these operators.
#include <ATen/Dispatch_v2.h>
#include <ATen/ExpandUtils.h>
#include <ATen/native/DistributionTemplates.h>
#include <ATen/native/Resize.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/multinomial_native.h>

#include "kernels/distributions.h"
#include "operators/distributions/fill.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

using runtime::Generator;
namespace templates = at::native::templates;

constexpr Operator kRandom{"aten::random_", kChecked};
constexpr Operator kBernoulli{"aten::bernoulli_", kChecked};
constexpr Operator kGeometric{"aten::geometric_", kChecked};
constexpr Operator kPoisson{"aten::poisson", kChecked};
constexpr Operator kBinomial{"aten::binomial", kChecked};
constexpr Operator kMultinomial{"aten::multinomial", kChecked};
constexpr Operator kRandperm{"aten::randperm", kChecked};

constexpr DtypeSet kReal = kIntegers | kFloating;
constexpr DtypeSet kIntegral =
    kBoolean | kReal | dtype_set(c10::ScalarType::UInt16, c10::ScalarType::UInt32, c10::ScalarType::UInt64);

using Geometric = Filling<kGeometric, kReal, &kernels::geometric>;
using Bernoulli = Filling<kBernoulli, kBoolean | kReal, &kernels::bernoulli>;

// A kernel for PyTorch's templates that draws integers in [from, from + range), or in all of int64.
template <class>
struct IntegerKernel {
  void operator()(at::TensorIterator& iterator, uint64_t range, int64_t from, const MaybeGenerator& generator) const {
    fill_with(kRandom, kIntegral, &kernels::integers, iterator.tensor(0), generator, range, from);
  }
  void operator()(at::TensorIterator& iterator, const MaybeGenerator& generator) const {
    (*this)(iterator, 0, 0, generator);
  }
};

template <class>
struct AnyIntegerKernel {
  void operator()(at::TensorIterator& iterator, const MaybeGenerator& generator) const {
    fill_with(kRandom, kIntegral, &kernels::any_integers, iterator.tensor(0), generator);
  }
};

at::Tensor& random_to(at::Tensor& self, int64_t to, MaybeGenerator generator) {
  return templates::random_from_to_impl<IntegerKernel, Generator>(self, 0, to, std::move(generator));
}

template <class>
struct BernoulliTensorKernel {
  void operator()(const at::Tensor& self, const at::Tensor& p, const MaybeGenerator& generator) const {
    const c10::Device device = device_of(kBernoulli.name, self);
    check_same_device_or_scalar(kBernoulli.name, device, p);
    TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(p.scalar_type()),
                                "\"bernoulli_tensor_cpu_p_\" not implemented for '", p.scalar_type(),
                                "': the probabilities have to be floating-point numbers");
    require_dtype((dtype_bit(self.scalar_type()) & (kBoolean | kReal)) != 0, "bernoulli_tensor_cpu_self_",
                  self.scalar_type());
    if (p.device().is_cpu()) {
      const double number = p.item<double>();
      TORCH_CHECK(number >= 0 && number <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", number);
    }
    const CurrentDeviceGuard current(device);
    (void)p.expand(self.sizes());  // throws if the shapes do not match
    at::assert_no_partial_overlap(self, p);
    launch(kBernoulli, device, &kernels::bernoulli_of_tensor, self, p,
           reserve_random(generator, device.index(), self.numel()));
  }
};

at::Tensor& bernoulli_out(const at::Tensor& self, MaybeGenerator generator, at::Tensor& out) {
  check_same_device("aten::bernoulli", device_of("aten::bernoulli", self, out), self, out);
  return templates::bernoulli_out_impl<BernoulliTensorKernel, Generator>(out, self, std::move(generator));
}

at::Tensor binomial(const at::Tensor& count, const at::Tensor& probability, MaybeGenerator generator) {
  TORCH_CHECK_VALUE(at::isFloatingType(count.scalar_type()),
                    "binomial only supports floating-point dtypes for count, got: ", count.scalar_type());
  TORCH_CHECK_VALUE(at::isFloatingType(probability.scalar_type()),
                    "binomial only supports floating-point dtypes for prob, got: ", probability.scalar_type());
  TORCH_CHECK(count.scalar_type() == probability.scalar_type(), "Found dtype ", probability.scalar_type(),
              " but expected ", count.scalar_type(), " (", kBinomial.name,
              ": count and prob have one dtype; convert "
              "one with .to(dtype))");
  const c10::Device device = device_of(kBinomial.name, count, probability);
  check_same_device_or_scalar(kBinomial.name, device, count, probability);
  const CurrentDeviceGuard current(device);
  at::Tensor out = make_output(at::infer_size(count.sizes(), probability.sizes()), {}, count.options().device(device));
  launch(kBinomial, device, &kernels::binomial, count, probability, out,
         reserve_steps(generator, device.index(), kernels::kSamplerSteps));
  return out;
}

// Launches the kernel for draws with replacement, which PyTorch's multinomial() calls through a stub. Without
// replacement, PyTorch composes it: it takes the largest quotients of weights and exponential numbers.
void draw_with_replacement(at::Tensor& out, const at::Tensor& weights, int64_t draws, MaybeGenerator generator) {
  const OperandDeviceGuard device(kMultinomial, weights);
  launch(kMultinomial, device, &kernels::multinomial, out, weights, draws,
         reserve_random(generator, device.index(), out.numel()));
}

// Throws c10::Error if there is no category to draw from. PyTorch's functions do not check that.
void check_categories(const at::Tensor& weights, int64_t draws) {
  TORCH_CHECK(draws <= 0 || weights.dim() == 0 || weights.size(-1) > 0, kMultinomial.name,
              ": expected probabilities of at least one category to draw from, but got the shape ", weights.sizes());
}

at::Tensor multinomial(const at::Tensor& self, int64_t draws, bool replacement, MaybeGenerator generator) {
  const OperandDeviceGuard device(kMultinomial, self);
  check_categories(self, draws);
  return at::native::multinomial(self, draws, replacement, std::move(generator));
}

at::Tensor& multinomial_out(const at::Tensor& self, int64_t draws, bool replacement, MaybeGenerator generator,
                            at::Tensor& out) {
  const OperandDeviceGuard device(kMultinomial, self, out);
  check_categories(self, draws);
  at::assert_no_internal_overlap(out);
  return at::native::multinomial_out(self, draws, replacement, std::move(generator), out);
}

at::Tensor& randperm_out(int64_t n, MaybeGenerator generator, at::Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be non-negative, got ", n);
  const OperandDeviceGuard device(kRandperm, out);
  AT_DISPATCH_V2(out.scalar_type(), kRandperm.name, AT_WRAP([&] {
                   TORCH_CHECK(n <= 1 || static_cast<int64_t>(static_cast<scalar_t>(n - 1)) == n - 1,
                               "randperm: n is too large for the result's dtype ", out.scalar_type(), ": ", n);
                 }),
                 AT_EXPAND(AT_ALL_TYPES), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), at::kHalf, at::kBFloat16);
  at::native::resize_output(out, {n});
  if (n != 0) {
    at::assert_no_internal_overlap(out);
    launch(kRandperm, device, &kernels::permutation, out, reserve_random(generator, device.index(), n));
  }
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::random_>(library, templates::random_impl<AnyIntegerKernel, Generator>);
  function<op::random__from>(library, templates::random_from_to_impl<IntegerKernel, Generator>);
  function<op::random__to>(library, random_to);
  function<op::geometric_>(library, templates::geometric_impl_<Geometric::By, Generator>);
  function<op::bernoulli__float>(library, templates::bernoulli_impl_<Bernoulli::By, Generator>);
  function<op::bernoulli__Tensor>(library, templates::bernoulli_impl_<BernoulliTensorKernel, Generator>);
  function<op::bernoulli_out>(library, bernoulli_out);
  function<op::poisson>(library, sample<kPoisson, &kernels::poisson>);
  function<op::binomial>(library, binomial);
  function<op::multinomial>(library, multinomial);
  function<op::multinomial_out>(library, multinomial_out);
  function<op::randperm_generator_out>(library, randperm_out);
}

}  // namespace

}  // namespace openreg::ops

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(multinomial_with_replacement_stub, &openreg::ops::draw_with_replacement)
}  // namespace at::native
