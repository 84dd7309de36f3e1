// SPDX-License-Identifier: BSD-3-Clause
// Random numbers: own kernels on the Philox generator, because a CPU kernel would draw from a CPU generator, one number
// after the other. rand(), randn(), randint() and the initialisers of torch.nn are built on these. PyTorch's templates
// check the arguments and hand complex tensors over as real ones.
#include "common/random.h"

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/native/DistributionTemplates.h>
#include <torch/library.h>

#include "common/device_check.h"
#include "openreg/runtime/alias.h"
#include "openreg/runtime/launch.h"

namespace openreg::ops {

namespace {

using MaybeGenerator = std::optional<at::Generator>;
using runtime::Generator;
namespace templates = at::native::templates;

// Launches fill_random() for an in-place operator.
template <class Value, int kPerStep, class Draw>
void launch_random(const char* name, const at::Tensor& self, const MaybeGenerator& generator, Draw draw) {
  // A generator of this device brings a tensor of the CPU here, too.
  TORCH_CHECK(
      self.device().type() == runtime::kDeviceType, name, ": the tensor is on ", self.device(),
      " but the generator is on an openreg device; use a CPU generator, or make the tensor with device='openreg'");
  const CurrentDevice current(self.device());
  const c10::DeviceIndex index = self.device().index();
  const runtime::PhiloxState state = reserve_random(generator, index, self.numel());
  at::Tensor alias = runtime::Aliases(name)(self);
  runtime::launch(name, index, [alias = std::move(alias), state, draw]() mutable {
    fill_random<Value, kPerStep>(alias, state, draw);
  });
}

template <class>
struct UniformKernel {
  void operator()(at::TensorIterator& iterator, double from, double to, const MaybeGenerator& generator) const {
    const at::Tensor& self = iterator.tensor(0);
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, self.scalar_type(), "uniform_", [&] {
      const auto draw = [from, to](const RandomBits& bits, auto& values) {
        for (size_t i = 0; i < values.size(); ++i) {
          const auto number = uniform_number<scalar_t>(bits, static_cast<int>(i));
          const auto value = static_cast<scalar_t>(number * (to - from) + from);
          values[i] = value < static_cast<scalar_t>(to) ? value : static_cast<scalar_t>(from);  // rounded up to `to`
        }
      };
      launch_random<scalar_t, kValuesPerStep<scalar_t>>("aten::uniform_", self, generator, draw);
    });
  }
};

at::Tensor& uniform_(at::Tensor& self, double from, double to, MaybeGenerator generator) {
  return templates::uniform_impl_<UniformKernel, Generator>(self, from, to, std::move(generator));
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

template <class>
struct NormalKernel {
  void operator()(at::Tensor& self, double mean, double standard_deviation, const MaybeGenerator& generator) const {
    at::assert_no_internal_overlap(self);
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, self.scalar_type(), "normal_", [&] {
      const auto draw = [mean, standard_deviation](const RandomBits& bits, auto& values) {
        draw_normal<scalar_t>(bits, values, mean, standard_deviation);
      };
      launch_random<scalar_t, kValuesPerStep<scalar_t>>("aten::normal_", self, generator, draw);
    });
  }
};

at::Tensor& normal_(at::Tensor& self, double mean, double standard_deviation, MaybeGenerator generator) {
  return templates::normal_impl_<NormalKernel, Generator>(self, mean, standard_deviation, std::move(generator));
}

template <class>
struct BernoulliKernel {
  void operator()(at::Tensor& self, double p, const MaybeGenerator& generator) const {
    AT_DISPATCH_ALL_TYPES_AND3(at::kBool, at::kHalf, at::kBFloat16, self.scalar_type(), "bernoulli_", [&] {
      const auto draw = [p](const RandomBits& bits, auto& values) {
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] = static_cast<scalar_t>(static_cast<double>(bits[i]) * 0x1p-32 < p);
        }
      };
      launch_random<scalar_t, 4>("aten::bernoulli_", self, generator, draw);
    });
  }
};

at::Tensor& bernoulli_(at::Tensor& self, double p, MaybeGenerator generator) {
  return templates::bernoulli_impl_<BernoulliKernel, Generator>(self, p, std::move(generator));
}

// The largest whole number that random_() may give: what the dtype holds exactly.
template <class Value>
constexpr uint64_t largest_integer() {
  if constexpr (std::numeric_limits<Value>::is_integer) {
    return static_cast<uint64_t>(std::numeric_limits<Value>::max());
  } else {
    return uint64_t{1} << std::numeric_limits<Value>::digits;
  }
}

// Whole numbers: in [from, from + range), modulo 2^64; or all of int64; or all that random_() may give.
template <class>
struct IntegerKernel {
  void operator()(at::TensorIterator& iterator, uint64_t range, int64_t from, const MaybeGenerator& generator) const {
    fill(iterator.tensor(0), generator, [range, from](uint64_t word) { return word % range + uint64_t(from); });
  }
  void operator()(at::TensorIterator& iterator, const MaybeGenerator& generator) const {
    fill(iterator.tensor(0), generator, [](uint64_t word) { return word; });
  }

  template <class Number>
  static void fill(const at::Tensor& self, const MaybeGenerator& generator, Number number) {
    AT_DISPATCH_V2(self.scalar_type(), "random_", AT_WRAP([&] {
                     const auto draw = [number](const RandomBits& bits, auto& values) {
                       for (size_t i = 0; i < values.size(); ++i) {
                         const uint64_t word = (static_cast<uint64_t>(bits[2 * i]) << 32) | bits[2 * i + 1];
                         values[i] = static_cast<scalar_t>(static_cast<int64_t>(number(word)));
                       }
                     };
                     launch_random<scalar_t, 2>("aten::random_", self, generator, draw);
                   }),
                   AT_EXPAND(AT_ALL_TYPES), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), at::kBool, at::kHalf,
                   at::kBFloat16);
  }
};

template <class>
struct AnyIntegerKernel {
  void operator()(at::TensorIterator& iterator, const MaybeGenerator& generator) const {
    uint64_t largest = 0;
    AT_DISPATCH_V2(iterator.dtype(), "random_", AT_WRAP([&] { largest = largest_integer<scalar_t>(); }),
                   AT_EXPAND(AT_ALL_TYPES), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), at::kBool, at::kHalf,
                   at::kBFloat16);
    if (largest == std::numeric_limits<uint64_t>::max()) {
      IntegerKernel<Generator>()(iterator, generator);
    } else {
      IntegerKernel<Generator>()(iterator, largest + 1, 0, generator);
    }
  }
};

at::Tensor& random_(at::Tensor& self, MaybeGenerator generator) {
  return templates::random_impl<AnyIntegerKernel, Generator>(self, std::move(generator));
}

at::Tensor& random_from_to(at::Tensor& self, int64_t from, std::optional<int64_t> to, MaybeGenerator generator) {
  return templates::random_from_to_impl<IntegerKernel, Generator>(self, from, to, std::move(generator));
}

at::Tensor& random_to(at::Tensor& self, int64_t to, MaybeGenerator generator) {
  return random_from_to(self, 0, to, std::move(generator));
}

template <class>
struct ExponentialKernel {
  void operator()(at::TensorIterator& iterator, double lambda, const MaybeGenerator& generator) const {
    const at::Tensor& self = iterator.tensor(0);
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, self.scalar_type(), "exponential_", [&] {
      using Number = std::conditional_t<std::is_same_v<scalar_t, double>, double, float>;
      const auto draw = [lambda](const RandomBits& bits, auto& values) {
        // Zero is promised not to occur (sampling divides by these numbers), so the smallest step stands for it.
        constexpr Number kSmallest = std::numeric_limits<Number>::epsilon() / 2;
        for (size_t i = 0; i < values.size(); ++i) {
          const Number number = std::max(uniform_number<Number>(bits, static_cast<int>(i)), kSmallest);
          values[i] = static_cast<scalar_t>(-std::log1p(-number) / lambda);
        }
      };
      launch_random<scalar_t, kValuesPerStep<scalar_t>>("aten::exponential_", self, generator, draw);
    });
  }
};

at::Tensor& exponential_(at::Tensor& self, double lambda, MaybeGenerator generator) {
  return templates::exponential_impl_<ExponentialKernel, Generator>(self, lambda, std::move(generator));
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
