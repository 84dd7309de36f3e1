// SPDX-License-Identifier: BSD-3-Clause
// Random numbers: own kernels on the Philox generator, because a CPU kernel would draw from a CPU generator, one number
// after the other. randn(), randint() and the initialisers of torch.nn are built on these and on uniform.cpp. PyTorch's
// templates check the arguments and hand complex tensors over as real ones.
#include "common/launch_random.h"

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/native/DistributionTemplates.h>
#include <torch/library.h>

namespace openreg::ops {

namespace {

using MaybeGenerator = std::optional<at::Generator>;
using runtime::Generator;
namespace templates = at::native::templates;

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

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("normal_", TORCH_FN(normal_));
  library.impl("bernoulli_.float", TORCH_FN(bernoulli_));
  library.impl("random_", TORCH_FN(random_));
  library.impl("random_.from", TORCH_FN(random_from_to));
  library.impl("random_.to", TORCH_FN(random_to));
}

}  // namespace

}  // namespace openreg::ops
