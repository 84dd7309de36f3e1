// SPDX-License-Identifier: BSD-3-Clause
// Sequences of numbers.
#include <ATen/Dispatch.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/RangeUtils.h>
#include <ATen/ops/arange_cpu_dispatch.h>
#include <torch/library.h>

#include "common/launch_on.h"

namespace openreg::ops {

namespace {

void arange_kernel(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
  at::cpu::arange_outf(start, end, step, out);
}

// An output of as many elements keeps its shape and takes the numbers in its own order.
void resize_to_count(const at::Tensor& out, int64_t count) {
  if (out.numel() == count) {
    return;
  }
  if (out.numel() > 0) {
    TORCH_WARN("The number of elements in the out tensor of shape ", out.sizes(), " is ", out.numel(),
               " which does not match the computed number of elements ", count,
               ". Note that this may occur as a result of rounding error. The out tensor will be resized to a tensor "
               "of shape (",
               count, ",).");
  }
  out.resize_({count});
}

at::Tensor& arange_out(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
  constexpr const char* kName = "aten::arange";
  const CurrentDevice current(out.device());
  int64_t count = 0;
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), kName,
                             [&] { count = at::native::compute_arange_size<scalar_t>(start, end, step); });
  resize_to_count(out, count);
  at::assert_no_internal_overlap(out);
  launch_kernel<decltype(&arange_kernel), const at::Scalar&, const at::Scalar&, const at::Scalar&, at::Tensor&>(
      kName, out.device(), &arange_kernel, start, end, step, out);
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("arange.start_out", TORCH_FN(arange_out));
}

}  // namespace

}  // namespace openreg::ops
