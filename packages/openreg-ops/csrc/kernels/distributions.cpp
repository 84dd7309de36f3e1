// SPDX-License-Identifier: BSD-3-Clause
// Random numbers that a formula computes from one or two uniform numbers.
#include "kernels/distributions.h"

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/ops/lt_cpu_dispatch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/random.h"

namespace openreg::ops::kernels {

namespace {

// The type in which numbers of a dtype are drawn: double for double, else float.
template <class Value>
using RandomNumber = std::conditional_t<std::is_same_v<Value, double>, double, float>;

// Fills a tensor with `make(number)`, where `number` is uniform in (0, 1). A zero is replaced by the smallest step, so
// that logarithms are finite.
template <class Value, class Make>
void fill_by_inversion(at::Tensor& out, runtime::PhiloxState start, Make make) {
  using Number = RandomNumber<Value>;
  fill_each<Value, WordOf<Value>>(out, start, [make](auto word) {
    constexpr Number kSmallest = std::numeric_limits<Number>::epsilon() / 2;
    return make(std::max(uniform_number<Number>(word), kSmallest));
  });
}

// Fills `values` by the transform of Box and Muller, which computes two normal numbers from two uniform ones (Annals of
// Mathematical Statistics 29, 1958).
template <class Value, class Words, class Values>
void draw_normal(const Words& words, Values& values, double mean, double deviation) {
  using Number = RandomNumber<Value>;
  constexpr Number kTwoPi = static_cast<Number>(6.283185307179586476925286766559);
  for (size_t i = 0; i < values.size(); i += 2) {
    const Number positive = 1 - uniform_number<Number>(words[i]);  // in (0, 1], so that its logarithm is finite
    const Number angle = kTwoPi * uniform_number<Number>(words[i + 1]);
    const Number radius = std::sqrt(-2 * std::log(positive)) * static_cast<Number>(deviation);
    values[i] = static_cast<Value>(radius * std::cos(angle) + static_cast<Number>(mean));
    values[i + 1] = static_cast<Value>(radius * std::sin(angle) + static_cast<Number>(mean));
  }
}

// Returns the largest number that random_() draws (any_integers()).
template <class Value>
constexpr uint64_t largest_integer() {
  if constexpr (std::numeric_limits<Value>::is_integer) {
    return static_cast<uint64_t>(std::numeric_limits<Value>::max());
  } else {
    return uint64_t{1} << std::numeric_limits<Value>::digits;
  }
}

template <class Value>
void fill_integers(at::Tensor& out, runtime::PhiloxState start, uint64_t range, int64_t from) {
  fill_each<Value, uint64_t>(out, start, [range, from](uint64_t word) {
    return static_cast<int64_t>((range == 0 ? word : word % range) + static_cast<uint64_t>(from));
  });
}

}  // namespace

void normal(at::Tensor& out, runtime::PhiloxState start, double mean, double deviation) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "normal_", [&] {
    fill_random<scalar_t, WordOf<scalar_t>>(out, start, [mean, deviation](const auto& words, auto& values) {
      draw_normal<scalar_t>(words, values, mean, deviation);
    });
  });
}

void log_normal(at::Tensor& out, runtime::PhiloxState start, double mean, double deviation) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "log_normal_", [&] {
    fill_random<scalar_t, WordOf<scalar_t>>(out, start, [mean, deviation](const auto& words, auto& values) {
      std::array<RandomNumber<scalar_t>, kElementsPerStep> logarithms;
      draw_normal<RandomNumber<scalar_t>>(words, logarithms, mean, deviation);
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<scalar_t>(std::exp(logarithms[i]));
      }
    });
  });
}

void exponential(at::Tensor& out, runtime::PhiloxState start, double lambda) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "exponential_", [&] {
    fill_by_inversion<scalar_t>(out, start, [lambda](auto number) { return -std::log1p(-number) / lambda; });
  });
}

void cauchy(at::Tensor& out, runtime::PhiloxState start, double median, double sigma) {
  constexpr double kPi = 3.141592653589793238462643383280;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "cauchy_", [&] {
    fill_by_inversion<scalar_t>(out, start, [median, sigma](auto number) {
      return median + sigma * std::tan(kPi * (static_cast<double>(number) - 0.5));
    });
  });
}

void geometric(at::Tensor& out, runtime::PhiloxState start, double p) {
  const double scale = std::log1p(-p);
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "geometric_", [&] {
    fill_each<scalar_t, uint32_t>(out, start, [scale](uint32_t word) {
      const double number = (static_cast<double>(word) + 0.5) * 0x1p-32;
      return std::ceil(std::log(number) / scale);
    });
  });
}

void bernoulli(at::Tensor& out, runtime::PhiloxState start, double p) {
  AT_DISPATCH_ALL_TYPES_AND3(at::kBool, at::kHalf, at::kBFloat16, out.scalar_type(), "bernoulli_", [&] {
    fill_each<scalar_t, uint32_t>(out, start, [p](uint32_t word) { return static_cast<double>(word) * 0x1p-32 < p; });
  });
}

void bernoulli_of_tensor(at::Tensor& out, const at::Tensor& p, runtime::PhiloxState start) {
  const at::Tensor probability = p.to(at::kDouble).contiguous();
  const double* values = probability.const_data_ptr<double>();
  for (int64_t i = 0; i < probability.numel(); ++i) {
    TORCH_CHECK(values[i] >= 0 && values[i] <= 1, "expects p to be in [0, 1], but got p=", values[i]);
  }
  out.copy_(at::cpu::lt(uniform_doubles(out.sizes(), start), probability));
}

void integers(at::Tensor& out, runtime::PhiloxState start, uint64_t range, int64_t from) {
  AT_DISPATCH_V2(out.scalar_type(), "random_", AT_WRAP([&] { fill_integers<scalar_t>(out, start, range, from); }),
                 AT_EXPAND(AT_ALL_TYPES), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), at::kBool, at::kHalf, at::kBFloat16);
}

void any_integers(at::Tensor& out, runtime::PhiloxState start) {
  uint64_t largest = 0;
  AT_DISPATCH_V2(out.scalar_type(), "random_", AT_WRAP([&] { largest = largest_integer<scalar_t>(); }),
                 AT_EXPAND(AT_ALL_TYPES), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), at::kBool, at::kHalf, at::kBFloat16);
  integers(out, start, largest + 1, 0);  // for uint64 the range 2^64 wraps to 0, which means 2^64
}

}  // namespace openreg::ops::kernels
