// SPDX-License-Identifier: BSD-3-Clause
// Rejection samplers of Poisson, binomial, gamma and Dirichlet numbers, with parameters for each element.
#include <ATen/Dispatch.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/native/Distributions.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>

#include <cmath>
#include <random>

#include "kernels/distributions.h"
#include "kernels/random.h"

namespace openreg::ops::kernels {

namespace {

// The random numbers of one element: a subsequence of the Philox generator, whose number is the element's index plus 2.
// Launches use different offsets, and other random kernels use subsequences 0 and 1. So no two elements share numbers
// if an element uses at most kSamplerSteps steps of four words. The probability that a sampler needs more is below
// 1e-30.
//
// Satisfies UniformRandomBitGenerator, for the distributions of <random>. Not thread-safe.
class ElementRandom {
 public:
  using result_type = uint32_t;

  ElementRandom(runtime::PhiloxState start, int64_t element)
      : engine_(start.seed(), static_cast<uint64_t>(element) + 2, start.offset()) {}

  static constexpr uint32_t min() { return 0; }
  static constexpr uint32_t max() { return std::numeric_limits<uint32_t>::max(); }
  uint32_t operator()() { return engine_(); }

  // Returns a number that is uniform in (0, 1).
  double uniform() { return (static_cast<double>(engine_()) + 0.5) * 0x1p-32; }
  // Returns a standard normal number, by the transform of Box and Muller.
  double normal() {
    constexpr double kTwoPi = 6.283185307179586476925286766559;
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(kTwoPi * uniform());
  }

 private:
  at::philox_engine engine_;
};

// Fills a contiguous tensor with `sample(index, random)`.
template <class Value, class Sample>
void fill_samples(at::Tensor& out, runtime::PhiloxState start, Sample sample) {
  constexpr int64_t kElementsPerThread = 256;
  Value* data = out.mutable_data_ptr<Value>();
  for_each_item(out.numel(), kElementsPerThread, [&](int64_t i) {
    ElementRandom random(start, i);
    data[i] = static_cast<Value>(sample(i, random));
  });
}

// Fills a contiguous tensor with gamma numbers. A result that rounds to zero is replaced by the smallest normal number,
// because zero has probability zero.
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

}  // namespace

// Draws counts as int64. A rate beyond the range of int64 is an error, because std::poisson_distribution would not
// terminate.
void poisson(const at::Tensor& rate, at::Tensor& out, runtime::PhiloxState start) {
  const at::Tensor rates = rate.to(at::kDouble).contiguous();
  const double* values = rates.const_data_ptr<double>();
  for (int64_t i = 0; i < rates.numel(); ++i) {
    TORCH_CHECK(values[i] >= 0, "invalid Poisson rate, expected rate to be non-negative, but got ", values[i]);
    TORCH_CHECK(values[i] < 0x1p63, "invalid Poisson rate, expected rate to be below 2^63, but got ", values[i],
                "; for such rates draw normal numbers, torch.normal(rate, rate.sqrt())");
  }
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "poisson", [&] {
    fill_samples<scalar_t>(out, start, [values](int64_t i, ElementRandom& random) {
      return values[i] == 0 ? 0.0 : static_cast<double>(std::poisson_distribution<int64_t>(values[i])(random));
    });
  });
}

void binomial(const at::Tensor& count, const at::Tensor& probability, at::Tensor& out, runtime::PhiloxState start) {
  const at::Tensor counts = count.to(at::kDouble).expand(out.sizes()).contiguous();
  const at::Tensor probabilities = probability.to(at::kDouble).expand(out.sizes()).contiguous();
  const double* n = counts.const_data_ptr<double>();
  const double* p = probabilities.const_data_ptr<double>();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "binomial", [&] {
    fill_samples<scalar_t>(out, start, [n, p](int64_t i, ElementRandom& random) {
      const auto uniform = [&random] { return random.uniform(); };
      BaseSampler<double, decltype(uniform)> sampler(uniform);
      if (std::isnan(n[i]) && p[i] > 0) {
        return n[i];  // because PyTorch's sampler would not terminate
      }
      return sample_binomial<double, double, decltype(uniform)>(n[i], p[i], sampler);
    });
  });
}

void gamma(const at::Tensor& shape, at::Tensor& out, runtime::PhiloxState start) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "_standard_gamma",
                                  [&] { fill_gamma<scalar_t>(out, shape, start); });
}

// Divides gamma numbers by their sum. Quotients that would round to zero or one in the output's dtype are replaced by
// the numbers next to these, because both have probability zero, and their logarithms or those of their complements are
// infinite.
void dirichlet(const at::Tensor& concentration, at::Tensor& out, runtime::PhiloxState start) {
  at::Tensor samples = at::empty(out.sizes(), out.options().dtype(at::kDouble));
  fill_gamma<double>(samples, concentration, start);
  samples.div_(samples.sum(-1, true));
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "_sample_dirichlet", [&] {
    const auto least = static_cast<double>(std::numeric_limits<scalar_t>::min());
    const auto below_one = 1 - static_cast<double>(std::numeric_limits<scalar_t>::epsilon()) / 2;
    samples.clamp_(least, below_one);
  });
  out.copy_(samples);
}

}  // namespace openreg::ops::kernels
