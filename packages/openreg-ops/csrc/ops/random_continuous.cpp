// SPDX-License-Identifier: BSD-3-Clause
// Random numbers by inversion of a distribution function: exponential, geometric, Cauchy and log-normal.
#include "common/launch_random.h"

#include <ATen/Dispatch.h>
#include <ATen/native/DistributionTemplates.h>
#include <torch/library.h>

namespace openreg::ops {

namespace {

using MaybeGenerator = std::optional<at::Generator>;
using runtime::Generator;
namespace templates = at::native::templates;

template <class>
struct ExponentialKernel {
  void operator()(at::TensorIterator& iterator, double lambda, const MaybeGenerator& generator) const {
    const at::Tensor& self = iterator.tensor(0);
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, self.scalar_type(), "exponential_", [&] {
      const auto draw = [lambda](const RandomBits& bits, auto& values) {
        draw_each<scalar_t>(bits, values, [lambda](auto number) { return -std::log1p(-number) / lambda; });
      };
      launch_random<scalar_t, kValuesPerStep<scalar_t>>("aten::exponential_", self, generator, draw);
    });
  }
};

at::Tensor& exponential_(at::Tensor& self, double lambda, MaybeGenerator generator) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()),
              "exponential_: the distribution is continuous, so the dtype has to be a floating one, but got ",
              self.scalar_type());
  return templates::exponential_impl_<ExponentialKernel, Generator>(self, lambda, std::move(generator));
}

// The number of trials up to the first success, 1 or more.
template <class>
struct GeometricKernel {
  void operator()(at::TensorIterator& iterator, double p, const MaybeGenerator& generator) const {
    const at::Tensor& self = iterator.tensor(0);
    const double scale = std::log1p(-p);
    AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, self.scalar_type(), "geometric_", [&] {
      const auto draw = [scale](const RandomBits& bits, auto& values) {
        for (size_t i = 0; i < values.size(); ++i) {
          const double number = (static_cast<double>(bits[i]) + 0.5) * 0x1p-32;
          values[i] = static_cast<scalar_t>(std::ceil(std::log(number) / scale));
        }
      };
      launch_random<scalar_t, 4>("aten::geometric_", self, generator, draw);
    });
  }
};

at::Tensor& geometric_(at::Tensor& self, double p, MaybeGenerator generator) {
  return templates::geometric_impl_<GeometricKernel, Generator>(self, p, std::move(generator));
}

template <class>
struct CauchyKernel {
  void operator()(at::TensorIterator& iterator, double median, double sigma, const MaybeGenerator& generator) const {
    const at::Tensor& self = iterator.tensor(0);
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, self.scalar_type(), "cauchy_", [&] {
      const auto draw = [median, sigma](const RandomBits& bits, auto& values) {
        constexpr double kPi = 3.141592653589793238462643383280;
        draw_each<scalar_t>(bits, values,
                            [=](auto number) { return median + sigma * std::tan(kPi * (double(number) - 0.5)); });
      };
      launch_random<scalar_t, kValuesPerStep<scalar_t>>("aten::cauchy_", self, generator, draw);
    });
  }
};

at::Tensor& cauchy_(at::Tensor& self, double median, double sigma, MaybeGenerator generator) {
  return templates::cauchy_impl_<CauchyKernel, Generator>(self, median, sigma, std::move(generator));
}

// `mean` and `standard_deviation` are those of the logarithm.
template <class>
struct LogNormalKernel {
  void operator()(at::TensorIterator& iterator, double mean, double standard_deviation,
                  const MaybeGenerator& generator) const {
    const at::Tensor& self = iterator.tensor(0);
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, self.scalar_type(), "log_normal_", [&] {
      constexpr int kCount = kValuesPerStep<scalar_t>;
      const auto draw = [mean, standard_deviation](const RandomBits& bits, auto& values) {
        std::array<RandomNumber<scalar_t>, kCount> logarithms;
        draw_normal<RandomNumber<scalar_t>>(bits, logarithms, mean, standard_deviation);
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] = static_cast<scalar_t>(std::exp(logarithms[i]));
        }
      };
      launch_random<scalar_t, kCount>("aten::log_normal_", self, generator, draw);
    });
  }
};

at::Tensor& log_normal_(at::Tensor& self, double mean, double standard_deviation, MaybeGenerator generator) {
  return templates::log_normal_impl_<LogNormalKernel, Generator>(self, mean, standard_deviation, std::move(generator));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("exponential_", TORCH_FN(exponential_));
  library.impl("geometric_", TORCH_FN(geometric_));
  library.impl("cauchy_", TORCH_FN(cauchy_));
  library.impl("log_normal_", TORCH_FN(log_normal_));
}

}  // namespace

}  // namespace openreg::ops
