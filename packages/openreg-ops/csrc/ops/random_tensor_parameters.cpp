// SPDX-License-Identifier: BSD-3-Clause
// Normal and Bernoulli numbers whose parameters are tensors, one per element.
#include "common/launch_random.h"

#include <ATen/Dispatch.h>
#include <ATen/native/DistributionTemplates.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/lt_cpu_dispatch.h>
#include <torch/library.h>

#include "common/launch_on.h"

namespace openreg::ops {

namespace {

using MaybeGenerator = std::optional<at::Generator>;
using runtime::Generator;
namespace templates = at::native::templates;

// Standard normal numbers by normal_() itself; PyTorch's templates scale and shift them afterwards.
template <class>
struct NormalKernel {
  void operator()(at::Tensor& self, double mean, double standard_deviation, const MaybeGenerator& generator) const {
    self.normal_(mean, standard_deviation, generator);
  }
};

at::Tensor normal_tensor_float(const at::Tensor& mean, double deviation, MaybeGenerator generator) {
  return templates::normal_impl<NormalKernel, Generator>(mean, deviation, std::move(generator));
}
at::Tensor normal_float_tensor(double mean, const at::Tensor& deviation, MaybeGenerator generator) {
  return templates::normal_impl<NormalKernel, Generator>(mean, deviation, std::move(generator));
}
at::Tensor normal_tensor_tensor(const at::Tensor& mean, const at::Tensor& deviation, MaybeGenerator generator) {
  check_same_device("aten::normal", mean.device(), deviation);
  return templates::normal_impl<NormalKernel, Generator>(mean, deviation, std::move(generator));
}
at::Tensor& normal_tensor_float_out(const at::Tensor& mean, double deviation, MaybeGenerator generator,
                                    at::Tensor& out) {
  return templates::normal_out_impl<NormalKernel, Generator>(out, mean, deviation, std::move(generator));
}
at::Tensor& normal_float_tensor_out(double mean, const at::Tensor& deviation, MaybeGenerator generator,
                                    at::Tensor& out) {
  return templates::normal_out_impl<NormalKernel, Generator>(out, mean, deviation, std::move(generator));
}
at::Tensor& normal_tensor_tensor_out(const at::Tensor& mean, const at::Tensor& deviation, MaybeGenerator generator,
                                     at::Tensor& out) {
  check_same_device("aten::normal", mean.device(), deviation);
  return templates::normal_out_impl<NormalKernel, Generator>(out, mean, deviation, std::move(generator));
}

// A uniform number below p is a success. Not a number and p outside of [0, 1] become the device's error, as on CUDA:
// they depend on data.
void bernoulli_kernel(at::Tensor& out, const at::Tensor& p, runtime::PhiloxState start) {
  const at::Tensor probability = p.to(at::kDouble).contiguous();
  const double* values = probability.const_data_ptr<double>();
  for (int64_t i = 0; i < probability.numel(); ++i) {
    TORCH_CHECK(values[i] >= 0 && values[i] <= 1, "expects p to be in [0, 1], but got p=", values[i]);
  }
  at::Tensor numbers = at::empty(out.sizes(), probability.options());
  fill_random<double, 2>(numbers, start, [](const RandomBits& bits, auto& step) {
    for (size_t i = 0; i < step.size(); ++i) {
      step[i] = uniform_number<double>(bits, static_cast<int>(i));
    }
  });
  out.copy_(at::cpu::lt(numbers, probability));
}

template <class>
struct BernoulliKernel {
  void operator()(const at::Tensor& self, const at::Tensor& p, const MaybeGenerator& generator) const {
    constexpr const char* kName = "aten::bernoulli_";
    const c10::Device device = device_of(kName, self);
    check_same_device_or_scalar(kName, device, p);
    TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(p.scalar_type()),
                                "\"bernoulli_tensor_cpu_p_\" not implemented for '", p.scalar_type(),
                                "': the probabilities have to be floating-point numbers");
    if (p.device().is_cpu()) {
      const double number = p.item<double>();
      TORCH_CHECK(number >= 0 && number <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", number);
    }
    const CurrentDevice current(device);
    const runtime::PhiloxState state = reserve_random(generator, device.index(), self.numel());
    (void)p.expand(self.sizes());  // refuses a shape that does not fit
    at::assert_no_partial_overlap(self, p);
    at::Tensor out = self;
    launch_kernel<decltype(&bernoulli_kernel), at::Tensor&, const at::Tensor&, runtime::PhiloxState>(
        kName, device, &bernoulli_kernel, out, p, state);
  }
};

at::Tensor& bernoulli_(at::Tensor& self, const at::Tensor& p, MaybeGenerator generator) {
  return templates::bernoulli_impl_<BernoulliKernel, Generator>(self, p, std::move(generator));
}

at::Tensor& bernoulli_out(const at::Tensor& self, MaybeGenerator generator, at::Tensor& out) {
  check_same_device("aten::bernoulli", device_of("aten::bernoulli", self, out), self, out);
  return templates::bernoulli_out_impl<BernoulliKernel, Generator>(out, self, std::move(generator));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("normal.Tensor_float", TORCH_FN(normal_tensor_float));
  library.impl("normal.Tensor_float_out", TORCH_FN(normal_tensor_float_out));
  library.impl("normal.float_Tensor", TORCH_FN(normal_float_tensor));
  library.impl("normal.float_Tensor_out", TORCH_FN(normal_float_tensor_out));
  library.impl("normal.Tensor_Tensor", TORCH_FN(normal_tensor_tensor));
  library.impl("normal.Tensor_Tensor_out", TORCH_FN(normal_tensor_tensor_out));
  library.impl("bernoulli_.Tensor", TORCH_FN(bernoulli_));
  library.impl("bernoulli.out", TORCH_FN(bernoulli_out));
}

}  // namespace

}  // namespace openreg::ops
