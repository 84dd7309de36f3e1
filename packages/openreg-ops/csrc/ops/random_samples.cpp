// SPDX-License-Identifier: BSD-3-Clause
// Samplers that reject: Poisson, binomial, gamma and Dirichlet numbers, with parameters per element.
#include "common/element_random.h"

#include <ATen/Dispatch.h>
#include <ATen/ExpandUtils.h>
#include <ATen/native/Distributions.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <torch/library.h>

#include <random>

#include "common/launch_on.h"

namespace openreg::ops {

namespace {

using MaybeGenerator = std::optional<at::Generator>;

runtime::PhiloxState reserve_samples(const MaybeGenerator& generator, c10::Device device) {
  return runtime::generator_or_default(generator, device.index()).reserve(ElementRandom::kSteps);
}

void poisson_kernel(const at::Tensor& rate, at::Tensor& out, runtime::PhiloxState start) {
  const at::Tensor rates = rate.to(at::kDouble).contiguous();
  const double* values = rates.const_data_ptr<double>();
  for (int64_t i = 0; i < rates.numel(); ++i) {
    TORCH_CHECK(values[i] >= 0, "invalid Poisson rate, expected rate to be non-negative, but got ", values[i]);
  }
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "poisson", [&] {
    fill_samples<scalar_t>(out, start, [values](int64_t i, ElementRandom& random) {
      return values[i] == 0 ? 0.0 : static_cast<double>(std::poisson_distribution<int64_t>(values[i])(random));
    });
  });
}

at::Tensor poisson(const at::Tensor& self, MaybeGenerator generator) {
  constexpr const char* kName = "aten::poisson";
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(self.scalar_type()), "\"poisson\" not implemented for '",
                              self.scalar_type(), "'; convert the rates with .float()");
  const CurrentDevice current(self.device());
  at::Tensor out = make_output(self.sizes(), {}, self.options());
  launch_kernel<decltype(&poisson_kernel), const at::Tensor&, at::Tensor&, runtime::PhiloxState>(
      kName, self.device(), &poisson_kernel, self, out, reserve_samples(generator, self.device()));
  return out;
}

void binomial_kernel(const at::Tensor& count, const at::Tensor& probability, at::Tensor& out,
                     runtime::PhiloxState start) {
  const at::Tensor counts = count.to(at::kDouble).expand(out.sizes()).contiguous();
  const at::Tensor probabilities = probability.to(at::kDouble).expand(out.sizes()).contiguous();
  const double* n = counts.const_data_ptr<double>();
  const double* p = probabilities.const_data_ptr<double>();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "binomial", [&] {
    fill_samples<scalar_t>(out, start, [n, p](int64_t i, ElementRandom& random) {
      const auto uniform = [&random] { return random.uniform(); };
      BaseSampler<double, decltype(uniform)> sampler(uniform);
      return sample_binomial<double, double, decltype(uniform)>(n[i], p[i], sampler);
    });
  });
}

at::Tensor binomial(const at::Tensor& count, const at::Tensor& probability, MaybeGenerator generator) {
  constexpr const char* kName = "aten::binomial";
  TORCH_CHECK_VALUE(at::isFloatingType(count.scalar_type()),
                    "binomial only supports floating-point dtypes for count, got: ", count.scalar_type());
  TORCH_CHECK_VALUE(at::isFloatingType(probability.scalar_type()),
                    "binomial only supports floating-point dtypes for prob, got: ", probability.scalar_type());
  const c10::Device device = device_of(kName, count, probability);
  check_same_device_or_scalar(kName, device, count, probability);
  const CurrentDevice current(device);
  at::Tensor out = make_output(at::infer_size(count.sizes(), probability.sizes()), {}, count.options().device(device));
  launch_kernel<decltype(&binomial_kernel), const at::Tensor&, const at::Tensor&, at::Tensor&, runtime::PhiloxState>(
      kName, device, &binomial_kernel, count, probability, out, reserve_samples(generator, device));
  return out;
}

// Fills with gamma numbers of scale 1; zero, which a density cannot give, becomes the smallest number.
template <class Value>
void fill_gamma(at::Tensor& out, const at::Tensor& shape, runtime::PhiloxState start) {
  const at::Tensor shapes = shape.to(at::kDouble).contiguous();
  const double* alpha = shapes.const_data_ptr<double>();
  fill_samples<Value>(out, start, [alpha](int64_t i, ElementRandom& random) {
    const auto uniform = [&random] { return random.uniform(); };
    const auto normal = [&random] { return random.normal(); };
    BaseSampler<double, decltype(uniform)> uniform_sampler(uniform);
    BaseSampler<double, decltype(normal)> normal_sampler(normal);
    const double sample =
        sample_gamma<double, double, decltype(uniform), decltype(normal)>(alpha[i], uniform_sampler, normal_sampler);
    return std::max(sample, static_cast<double>(std::numeric_limits<Value>::min()));
  });
}

void gamma_kernel(const at::Tensor& shape, at::Tensor& out, runtime::PhiloxState start) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "_standard_gamma",
                                  [&] { fill_gamma<scalar_t>(out, shape, start); });
}

at::Tensor standard_gamma(const at::Tensor& self, MaybeGenerator generator) {
  constexpr const char* kName = "aten::_standard_gamma";
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(self.scalar_type()), "\"gamma\" not implemented for '",
                              self.scalar_type(), "'; convert the concentration with .float()");
  const CurrentDevice current(self.device());
  at::Tensor out = make_output(self.sizes(), {}, self.options());
  launch_kernel<decltype(&gamma_kernel), const at::Tensor&, at::Tensor&, runtime::PhiloxState>(
      kName, self.device(), &gamma_kernel, self, out, reserve_samples(generator, self.device()));
  return out;
}

// Gamma numbers, divided by their sum over the last dimension.
void dirichlet_kernel(const at::Tensor& concentration, at::Tensor& out, runtime::PhiloxState start) {
  at::Tensor samples = at::empty(out.sizes(), out.options().dtype(at::kDouble));
  fill_gamma<double>(samples, concentration, start);
  out.copy_(samples.div_(samples.sum(-1, true)));
}

at::Tensor sample_dirichlet(const at::Tensor& self, MaybeGenerator generator) {
  constexpr const char* kName = "aten::_sample_dirichlet";
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(self.scalar_type()), "\"dirichlet\" not implemented for '",
                              self.scalar_type(), "'; convert the concentration with .float()");
  const CurrentDevice current(self.device());
  at::Tensor out = make_output(self.sizes(), {}, self.options());
  launch_kernel<decltype(&dirichlet_kernel), const at::Tensor&, at::Tensor&, runtime::PhiloxState>(
      kName, self.device(), &dirichlet_kernel, self, out, reserve_samples(generator, self.device()));
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("poisson", TORCH_FN(poisson));
  library.impl("binomial", TORCH_FN(binomial));
  library.impl("_standard_gamma", TORCH_FN(standard_gamma));
  library.impl("_sample_dirichlet", TORCH_FN(sample_dirichlet));
}

}  // namespace

}  // namespace openreg::ops
