// SPDX-License-Identifier: BSD-3-Clause
// sum() with our own kernel, where OPENREG_KERNELS=raw asks for it. PyTorch's meta function makes the output, as in the
// table.
#include <ATen/MemoryOverlap.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/ops/sum_cpu_dispatch.h>
#include <ATen/ops/sum_meta.h>
#include <ATen/ops/sum_ops.h>

#include "common/raw_operands.h"
#include "common/structured.h"
#include "kernel_choice.h"
#include "raw/sum.h"

namespace openreg::ops {

namespace {

OPENREG_STRUCTURED_SPEC(sum_dim_IntList, sum_IntList_out, sum)

struct Sum : Spec_sum_dim_IntList {
  // Gives false for operands that the kernel does not serve: complex ones, and those of a dtype that is converted
  // first.
  static bool launch(c10::Device device, const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                     std::optional<c10::ScalarType> /*dtype*/, at::Tensor& out) {
    const std::optional<raw::Type> input_type = raw_type(self.scalar_type());
    const std::optional<raw::Type> output_type = raw_type(out.scalar_type());
    if (!input_type.has_value() || !output_type.has_value() || !raw::sum_serves(*input_type, *output_type) ||
        at::get_overlap_status(self, out) != at::MemOverlapStatus::No) {
      return false;
    }
    const auto is_reduced = at::native::make_dim_mask(dims, self.dim());
    c10::DimVector kept_sizes, kept_strides, reduced_sizes, reduced_strides, out_strides;
    for (int64_t dim = 0; dim < self.dim(); ++dim) {
      const bool reduced = is_reduced[static_cast<size_t>(dim)];
      (reduced ? reduced_sizes : kept_sizes).push_back(self.size(dim));
      (reduced ? reduced_strides : kept_strides).push_back(self.stride(dim));
      if (!reduced) {
        out_strides.push_back(out.stride(keepdim ? dim : static_cast<int64_t>(out_strides.size())));
      }
    }
    launch_raw("aten::sum", device, &raw::sum,
               raw::SumArguments{*input_type, *output_type, kernel_address(self), mutable_kernel_address(out),
                                 merged_axes<2>(kept_sizes, {kept_strides, out_strides}, AxisOrder::kByStride),
                                 merged_axes<1>(reduced_sizes, {reduced_strides}, AxisOrder::kByStride)},
               reads(self), writes(out));
    return true;
  }
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  if (raw_kernels_chosen()) {
    register_structured<Sum>(library);
  }
}

}  // namespace

}  // namespace openreg::ops
