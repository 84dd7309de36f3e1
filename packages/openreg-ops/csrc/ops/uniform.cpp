// SPDX-License-Identifier: BSD-3-Clause
// Uniform random numbers, with our own kernel; rand() is built on them. PyTorch's template checks the arguments and
// hands complex tensors over as real ones.
#include <ATen/native/DistributionTemplates.h>
#include <torch/library.h>

#include "common/device_check.h"
#include "common/random.h"
#include "common/raw_operands.h"
#include "raw/uniform.h"

namespace openreg::ops {

namespace {

using MaybeGenerator = std::optional<at::Generator>;
using runtime::Generator;

template <class>
struct UniformKernel {
  void operator()(at::TensorIterator& iterator, double from, double to, const MaybeGenerator& generator) const {
    constexpr const char* kName = "aten::uniform_";
    const at::Tensor& self = iterator.tensor(0);
    const std::optional<raw::Type> type = raw_type(self.scalar_type());
    TORCH_CHECK_NOT_IMPLEMENTED(type.has_value() && raw::uniform_serves(*type), "\"uniform_\" not implemented for '",
                                self.scalar_type(), "'");
    const runtime::PhiloxState state = reserve_random(kName, self, generator);
    const CurrentDevice current(self.device());
    raw::UniformArguments arguments{*type, mutable_kernel_address(self),
                                    merged_axes<1>(self.sizes(), {self.strides()}, AxisOrder::kByIndex), from, to};
    auto draw = [state, arguments = std::move(arguments)] { raw::uniform(arguments, state.seed(), state.offset()); };
    const RawOperands operands(writes(self));
    runtime::launch(kName, self.device().index(), std::move(draw), operands.get());
  }
};

at::Tensor& uniform_(at::Tensor& self, double from, double to, MaybeGenerator generator) {
  return at::native::templates::uniform_impl_<UniformKernel, Generator>(self, from, to, std::move(generator));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("uniform_", TORCH_FN(uniform_));
}

}  // namespace

}  // namespace openreg::ops
