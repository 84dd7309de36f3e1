// SPDX-License-Identifier: BSD-3-Clause
// Searching sorted sequences, and a number among tests.
#include <ATen/native/BucketizationUtils.h>
#include <ATen/ops/bucketize_cpu_dispatch.h>
#include <ATen/ops/bucketize_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isin_cpu_dispatch.h>
#include <ATen/ops/isin_ops.h>
#include <ATen/ops/searchsorted_cpu_dispatch.h>
#include <ATen/ops/searchsorted_ops.h>
#include <torch/library.h>

#include "common/described.h"

namespace openreg::ops {

namespace {

using MaybeSide = std::optional<std::string_view>;
using MaybeTensor = std::optional<at::Tensor>;

// With a sorter the host waits: PyTorch looks at its values on every device.
void check_search(const at::Tensor& sequence, const at::Tensor& values, bool out_int32, bool right,
                  const MaybeSide& side, const MaybeTensor& sorter) {
  const at::Tensor output = at::empty({0}, out_int32 ? at::kInt : at::kLong);  // only its dtype is looked at
  at::native::searchsorted_pre_check(sequence, values, output, out_int32, right, side, sorter.value_or(at::Tensor()));
  if (values.numel() == 0) {
    return;  // no kernel looks at the dtype
  }
  for (const c10::ScalarType dtype : {sequence.scalar_type(), values.scalar_type()}) {
    require_dtype(!c10::isComplexType(dtype) && dtype != at::kBool, "searchsorted_out_cpu", dtype);
  }
}

// The kernel copies operands whose elements do not follow each other.
void warn_of_copies(const at::Tensor& sequence, const at::Tensor& values, const MaybeTensor& sorter) {
  constexpr const char* kReason =
      " tensor is non-contiguous, this will lower the performance due to extra data copy when converting it to a "
      "contiguous one. This message will only appear once per program.";
  if (values.defined() && !values.is_contiguous()) {
    TORCH_WARN_ONCE("torch.searchsorted(): input value", kReason);
  }
  if (!sequence.is_contiguous()) {
    TORCH_WARN_ONCE("torch.searchsorted(): boundary", kReason);
  }
  if (sorter.has_value() && sorter->defined() && !sorter->is_contiguous()) {
    TORCH_WARN_ONCE("torch.searchsorted(): sorter", kReason);
  }
}

c10::ScalarType index_dtype(bool out_int32) {
  return out_int32 ? at::kInt : at::kLong;
}

OutputSpec describe_searchsorted(const at::Tensor& sequence, const at::Tensor& self, bool out_int32, bool right,
                                 const MaybeSide& side, const MaybeTensor& sorter) {
  check_search(sequence, self, out_int32, right, side, sorter);
  if (self.numel() > 0) {
    warn_of_copies(sequence, self, sorter);
  }
  return output_of(self.sizes(), index_dtype(out_int32));
}

OutputSpec describe_searchsorted_scalar(const at::Tensor& sequence, const at::Scalar& /*self*/, bool out_int32,
                                        bool right, const MaybeSide& side, const MaybeTensor& sorter) {
  TORCH_CHECK(sequence.dim() == 1,
              "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we "
              "got boundaries tensor dim(",
              sequence.dim(), ") and input value's dim(0) numel(1)");
  check_search(sequence, sequence, out_int32, right, side, sorter);
  warn_of_copies(sequence, at::Tensor(), sorter);
  return scalar_output(index_dtype(out_int32));
}

void check_boundaries(const at::Tensor& boundaries) {
  TORCH_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
}

OutputSpec describe_bucketize(const at::Tensor& self, const at::Tensor& boundaries, bool out_int32, bool right) {
  check_boundaries(boundaries);
  return describe_searchsorted(boundaries, self, out_int32, right, std::nullopt, std::nullopt);
}

OutputSpec describe_bucketize_scalar(const at::Scalar& self, const at::Tensor& boundaries, bool out_int32, bool right) {
  check_boundaries(boundaries);
  return describe_searchsorted_scalar(boundaries, self, out_int32, right, std::nullopt, std::nullopt);
}

// Not in the structured table: the meta function announces an empty output, and the kernel gives one number.
OutputSpec describe_isin(const at::Scalar& /*element*/, const at::Tensor& /*tests*/, bool /*assume_unique*/,
                         bool /*invert*/) {
  return scalar_output(at::kBool);
}

at::Tensor& isin_kernel(const at::Scalar& element, const at::Tensor& tests, bool assume_unique, bool invert,
                        at::Tensor& out) {
  out = at::cpu::isin(element, tests, assume_unique, invert);
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_DESCRIBED(library, bucketize_Scalar, at::cpu::bucketize, describe_bucketize_scalar)
  OPENREG_DESCRIBED_OUT(library, bucketize_Tensor, bucketize_Tensor_out, at::cpu::bucketize_outf, describe_bucketize)
  OPENREG_DESCRIBED_OUT(library, isin_Scalar_Tensor, isin_Scalar_Tensor_out, isin_kernel, describe_isin)
  OPENREG_DESCRIBED_OUT(library, searchsorted_Scalar, searchsorted_Scalar_out, at::cpu::searchsorted_outf,
                        describe_searchsorted_scalar)
  OPENREG_DESCRIBED_OUT(library, searchsorted_Tensor, searchsorted_Tensor_out, at::cpu::searchsorted_outf,
                        describe_searchsorted)
}

}  // namespace

}  // namespace openreg::ops
