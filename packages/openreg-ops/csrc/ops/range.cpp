// SPDX-License-Identifier: BSD-3-Clause
// Sequences of numbers.
#include <ATen/native/RangeUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/arange_cpu_dispatch.h>
#include <torch/library.h>

#include "common/launch_on.h"

namespace openreg::ops {

namespace {

void arange_kernel(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
  at::cpu::arange_outf(start, end, step, out);
}

at::Tensor& arange_out(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
  constexpr const char* kName = "aten::arange";
  const CurrentDevice current(out.device());
  int64_t count = 0;
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), kName,
                             [&] { count = at::native::compute_arange_size<scalar_t>(start, end, step); });
  at::native::resize_output(out, {count});
  launch_kernel<decltype(&arange_kernel), const at::Scalar&, const at::Scalar&, const at::Scalar&, at::Tensor&>(
      kName, out.device(), &arange_kernel, start, end, step, out);
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("arange.start_out", TORCH_FN(arange_out));
}

}  // namespace

}  // namespace openreg::ops
