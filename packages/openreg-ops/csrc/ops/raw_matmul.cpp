// SPDX-License-Identifier: BSD-3-Clause
// mm() with our own kernel, where OPENREG_KERNELS=raw asks for it. PyTorch's meta function makes the output, as in the
// table.
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <ATen/ops/mm_meta.h>
#include <ATen/ops/mm_ops.h>

#include "common/raw_operands.h"
#include "common/structured.h"
#include "kernel_choice.h"
#include "raw/matmul.h"

namespace openreg::ops {

namespace {

OPENREG_STRUCTURED_SPEC(mm, mm_out, mm)

raw::Matrix matrix_of(const at::Tensor& tensor, const void* address) {
  return {const_cast<void*>(address), {tensor.stride(0), tensor.stride(1)}};
}

struct MatrixProduct : Spec_mm {
  // Gives false for operands that the kernel does not serve: complex ones, sparse ones.
  static bool launch(c10::Device device, const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
    const std::optional<raw::Type> type = raw_type(out.scalar_type());
    if (!type.has_value() || !raw::matmul_serves(*type) || self.scalar_type() != out.scalar_type() ||
        other.scalar_type() != out.scalar_type() || at::get_overlap_status(self, out) != at::MemOverlapStatus::No ||
        at::get_overlap_status(other, out) != at::MemOverlapStatus::No) {
      return false;
    }
    launch_raw(
        "aten::mm", device, &raw::matmul,
        raw::MatmulArguments{*type, matrix_of(self, kernel_address(self)), matrix_of(other, kernel_address(other)),
                             matrix_of(out, mutable_kernel_address(out)), self.size(0), other.size(1), self.size(1)},
        reads(self, other), writes(out));
    return true;
  }
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  if (raw_kernels_chosen()) {
    register_structured<MatrixProduct>(library);
  }
}

}  // namespace

}  // namespace openreg::ops
