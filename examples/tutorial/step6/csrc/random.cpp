// SPDX-License-Identifier: BSD-3-Clause
// Random operators: each takes a seed from the device's generator when it is launched.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/native_dropout_backward_native.h>
#include <ATen/ops/native_dropout_native.h>
#include <torch/library.h>

#include "generator.h"
#include "launch.h"

namespace pocket {

namespace {

using Given = std::optional<at::Generator>;

template <class Draw>
at::Tensor& launch_draw(at::Tensor& self, const Given& given, Draw draw) {
  at::Generator generator = given.has_value() ? *given : default_generator(self.get_device());
  TORCH_CHECK(generator.device() == self.device(), "expected a generator of ", self.device(), ", got one of ",
              generator.device());
  at::assert_no_internal_overlap(self);
  // The CPU's function checks dtype and bounds. On one element, here, its error is one of this call.
  const at::Tensor one = at::empty({1}, self.options().device(at::kCPU));
  draw(one, at::detail::createCPUGenerator(0));
  uint64_t seed = 0;
  {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    seed = static_cast<GeneratorImpl*>(generator.unsafeGetGeneratorImpl())->next_seed();
  }
  launch(self.device(), [draw, seed, view = host_view(self)] { draw(view, at::detail::createCPUGenerator(seed)); });
  return self;
}

at::Tensor& normal(at::Tensor& self, double mean, double deviation, Given generator) {
  TORCH_CHECK(deviation >= 0, "normal_: expected a standard deviation of at least 0, got ", deviation);
  return launch_draw(self, generator, [=](auto& view, auto numbers) { view.normal_(mean, deviation, numbers); });
}

at::Tensor& uniform(at::Tensor& self, double from, double to, Given generator) {
  TORCH_CHECK(from <= to, "uniform_: expected from <= to, got ", from, " and ", to);
  return launch_draw(self, generator, [=](auto& view, auto numbers) { view.uniform_(from, to, numbers); });
}

at::Tensor& bernoulli(at::Tensor& self, double p, Given generator) {
  TORCH_CHECK(p >= 0 && p <= 1, "bernoulli_: expected a probability, got ", p);
  return launch_draw(self, generator, [=](auto& view, auto numbers) { view.bernoulli_(p, numbers); });
}

at::Tensor& random_from(at::Tensor& self, int64_t from, std::optional<int64_t> to, Given generator) {
  TORCH_CHECK(!to.has_value() || from < *to, "random_: expected from < to, got ", from, " and ", to.value_or(0));
  return launch_draw(self, generator, [=](auto& view, auto numbers) { view.random_(from, to, numbers); });
}

at::Tensor& random_to(at::Tensor& self, int64_t to, Given generator) {
  return random_from(self, 0, to, std::move(generator));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("normal_", TORCH_FN(normal));
  library.impl("uniform_", TORCH_FN(uniform));
  library.impl("bernoulli_.float", TORCH_FN(bernoulli));
  library.impl("random_.from", TORCH_FN(random_from));
  library.impl("random_.to", TORCH_FN(random_to));
  // PyTorch's own functions. They call bernoulli_() and products, which are the device's for its tensors.
  library.impl("native_dropout", TORCH_FN(at::native::native_dropout_cpu));
  library.impl("native_dropout_backward", TORCH_FN(at::native::native_dropout_backward));
}

}  // namespace

}  // namespace pocket
