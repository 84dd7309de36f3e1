// SPDX-License-Identifier: BSD-3-Clause
// Random numbers: own kernels on the Philox generator, because a CPU kernel would draw from a CPU generator, one number
// after the other. rand(), randn(), randint() and the initialisers of torch.nn are built on these.
#include "common/random.h"

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/ops/view_as_real.h>
#include <torch/library.h>

#include "common/device_check.h"
#include "openreg/runtime/alias.h"
#include "openreg/runtime/launch.h"

namespace openreg::ops {

namespace {

using MaybeGenerator = std::optional<at::Generator>;

// Launches `fill(alias, state)` for an in-place random operator.
template <class Fill>
at::Tensor& launch_random(const char* name, at::Tensor& self, const MaybeGenerator& generator, Fill fill) {
  if (self.numel() == 0) {
    return self;
  }
  const c10::DeviceIndex index = self.device().index();
  const runtime::PhiloxState state = reserve_random(generator, index, self.numel());
  at::Tensor alias = runtime::Aliases(name)(self);
  runtime::launch(name, index, [alias = std::move(alias), state, fill]() mutable { fill(alias, state); });
  return self;
}

at::Tensor& uniform_(at::Tensor& self, double from, double to, MaybeGenerator generator) {
  TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), "uniform_ on openreg takes floating-point tensors, got ",
              self.scalar_type());
  return launch_random("aten::uniform_", self, generator, [from, to](at::Tensor& out, runtime::PhiloxState state) {
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "uniform_", [&] {
      fill_random<scalar_t, kValuesPerStep<scalar_t>>(out, state, [&](const RandomBits& bits, auto& values) {
        for (size_t i = 0; i < values.size(); ++i) {
          const auto number = uniform_number<scalar_t>(bits, static_cast<int>(i));
          const auto value = static_cast<scalar_t>(number * (to - from) + from);
          values[i] = value < static_cast<scalar_t>(to) ? value : static_cast<scalar_t>(from);  // rounded up to `to`
        }
      });
    });
  });
}

// Box and Muller: two uniform numbers give two normal ones (Annals of Mathematical Statistics 29, 1958).
template <class Value, class Values>
void draw_normal(const RandomBits& bits, Values& values, double mean, double standard_deviation) {
  using Number = std::conditional_t<std::is_same_v<Value, double>, double, float>;
  constexpr Number kTwoPi = static_cast<Number>(6.283185307179586476925286766559);
  for (size_t i = 0; i < values.size(); i += 2) {
    const Number positive = 1 - uniform_number<Number>(bits, static_cast<int>(i));  // in (0, 1], fit for a logarithm
    const Number angle = kTwoPi * uniform_number<Number>(bits, static_cast<int>(i) + 1);
    const Number radius = std::sqrt(-2 * std::log(positive)) * static_cast<Number>(standard_deviation);
    values[i] = static_cast<Value>(radius * std::cos(angle) + static_cast<Number>(mean));
    values[i + 1] = static_cast<Value>(radius * std::sin(angle) + static_cast<Number>(mean));
  }
}

at::Tensor& normal_(at::Tensor& self, double mean, double standard_deviation, MaybeGenerator generator) {
  TORCH_CHECK(standard_deviation >= 0, "normal expects std >= 0.0, but found std ", standard_deviation);
  if (self.is_complex()) {
    // Both parts are independent, and the variance of their sum is that asked for.
    at::Tensor parts = at::view_as_real(self);
    const double part_deviation = standard_deviation / std::sqrt(2.0);
    normal_(parts, 0, part_deviation, std::move(generator));
    return mean == 0 ? self : self.add_(mean);
  }
  TORCH_CHECK(at::isFloatingType(self.scalar_type()),
              "normal_ on openreg takes floating-point and complex tensors, got ", self.scalar_type());
  return launch_random(
      "aten::normal_", self, generator, [mean, standard_deviation](at::Tensor& out, runtime::PhiloxState state) {
        AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "normal_", [&] {
          fill_random<scalar_t, kValuesPerStep<scalar_t>>(out, state, [&](const RandomBits& bits, auto& values) {
            draw_normal<scalar_t>(bits, values, mean, standard_deviation);
          });
        });
      });
}

at::Tensor& bernoulli_(at::Tensor& self, double p, MaybeGenerator generator) {
  TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  return launch_random("aten::bernoulli_", self, generator, [p](at::Tensor& out, runtime::PhiloxState state) {
    AT_DISPATCH_ALL_TYPES_AND3(at::kBool, at::kHalf, at::kBFloat16, out.scalar_type(), "bernoulli_", [&] {
      fill_random<scalar_t, 4>(out, state, [p](const RandomBits& bits, auto& values) {
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] = static_cast<scalar_t>(static_cast<double>(bits[i]) * 0x1p-32 < p);
        }
      });
    });
  });
}

// Whole numbers in [from, from + range); range 0 stands for all 2^64. Both as PyTorch's kernels count them: modulo
// 2^64.
at::Tensor& fill_integers(at::Tensor& self, uint64_t range, int64_t from, const MaybeGenerator& generator) {
  return launch_random("aten::random_", self, generator, [range, from](at::Tensor& out, runtime::PhiloxState state) {
    AT_DISPATCH_V2(out.scalar_type(), "random_", AT_WRAP([&] {
                     fill_random<scalar_t, 2>(out, state, [&](const RandomBits& bits, auto& values) {
                       for (size_t i = 0; i < values.size(); ++i) {
                         const uint64_t word = (static_cast<uint64_t>(bits[2 * i]) << 32) | bits[2 * i + 1];
                         const uint64_t number = range == 0 ? word : word % range;
                         values[i] = static_cast<scalar_t>(static_cast<int64_t>(number + static_cast<uint64_t>(from)));
                       }
                     });
                   }),
                   AT_EXPAND(AT_ALL_TYPES), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), at::kBool, at::kHalf,
                   at::kBFloat16);
  });
}

// The largest whole number that random_() may give: what the dtype holds exactly.
uint64_t largest_integer(c10::ScalarType dtype) {
  uint64_t largest = 1;
  AT_DISPATCH_V2(dtype, "random_", AT_WRAP([&] {
                   if constexpr (std::numeric_limits<scalar_t>::is_integer) {
                     largest = static_cast<uint64_t>(std::numeric_limits<scalar_t>::max());
                   } else {
                     largest = uint64_t{1} << std::numeric_limits<scalar_t>::digits;
                   }
                 }),
                 AT_EXPAND(AT_ALL_TYPES), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), at::kBool, at::kHalf, at::kBFloat16);
  return largest;
}

at::Tensor& random_(at::Tensor& self, MaybeGenerator generator) {
  return fill_integers(self, largest_integer(self.scalar_type()) + 1, 0, generator);
}

at::Tensor& random_from_to(at::Tensor& self, int64_t from, std::optional<int64_t> to, MaybeGenerator generator) {
  if (!to.has_value()) {
    return fill_integers(self, largest_integer(self.scalar_type()) + 1 - static_cast<uint64_t>(from), from, generator);
  }
  TORCH_CHECK(from < *to, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", *to);
  if (at::isIntegralType(self.scalar_type(), true) && self.scalar_type() != at::kUInt64) {
    TORCH_CHECK(*to - 1 <= static_cast<int64_t>(largest_integer(self.scalar_type())), "to - 1 is out of bounds for ",
                self.dtype());
  }
  return fill_integers(self, static_cast<uint64_t>(*to) - static_cast<uint64_t>(from), from, generator);
}

at::Tensor& random_to(at::Tensor& self, int64_t to, MaybeGenerator generator) {
  return random_from_to(self, 0, to, std::move(generator));
}

at::Tensor& exponential_(at::Tensor& self, double lambd, MaybeGenerator generator) {
  TORCH_CHECK(lambd > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambd);
  return launch_random("aten::exponential_", self, generator, [lambd](at::Tensor& out, runtime::PhiloxState state) {
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "exponential_", [&] {
      fill_random<scalar_t, kValuesPerStep<scalar_t>>(out, state, [&](const RandomBits& bits, auto& values) {
        for (size_t i = 0; i < values.size(); ++i) {
          const auto number = uniform_number<scalar_t>(bits, static_cast<int>(i));
          values[i] = static_cast<scalar_t>(-std::log1p(-number) / lambd);
        }
      });
    });
  });
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("uniform_", TORCH_FN(uniform_));
  library.impl("normal_", TORCH_FN(normal_));
  library.impl("bernoulli_.float", TORCH_FN(bernoulli_));
  library.impl("random_", TORCH_FN(random_));
  library.impl("random_.from", TORCH_FN(random_from_to));
  library.impl("random_.to", TORCH_FN(random_to));
  library.impl("exponential_", TORCH_FN(exponential_));
}

}  // namespace

}  // namespace openreg::ops
