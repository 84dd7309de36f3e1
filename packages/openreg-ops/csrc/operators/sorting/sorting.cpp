// SPDX-License-Identifier: BSD-3-Clause
// Sorting, ranks of elements (median, mode, kthvalue, topk), and searches in sorted sequences.
#include <ATen/native/BucketizationUtils.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mode_native.h>

#include "registration/declare.h"

namespace openreg::ops {

namespace {

bool is_ordered_number(const at::Tensor& tensor) {
  return !tensor.is_complex() && tensor.scalar_type() != at::kBool;
}

// Returns the specifications of the value at a rank along a dimension, and of its index.
std::array<OutputSpec, 2> meta_ranked(const at::Tensor& self, int64_t dim, bool keepdim, const char* name) {
  at::native::zero_numel_check_dims(self, at::maybe_wrap_dim(dim, self.dim()), name);
  return {reduced_output(self, dim, keepdim, self.scalar_type()), reduced_output(self, dim, keepdim, at::kLong)};
}

OutputSpec meta_median(const at::Tensor& self) {
  require_dtype(is_ordered_number(self), "median_cpu", self.scalar_type());
  return scalar_output(self.scalar_type());
}

std::array<OutputSpec, 2> meta_median_dim(const at::Tensor& self, int64_t dim, bool keepdim) {
  require_dtype(is_ordered_number(self), "median_out", self.scalar_type());
  // If each median is of one element, the output may be the operand itself.
  auto [values, indices] = meta_ranked(self, dim, keepdim, "median()");
  return {std::move(values).allowing({.elementwise = true}), indices};
}

std::array<OutputSpec, 2> meta_kthvalue(const at::Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  const int64_t wrapped = at::maybe_wrap_dim(dim, self.dim());
  const int64_t size = self.dim() > 0 ? self.size(wrapped) : 1;
  at::native::zero_numel_check_dims(self, wrapped, "kthvalue()");
  TORCH_CHECK(k >= 1 && k <= size, "kthvalue(): selected number k out of range for dimension ", wrapped);
  require_dtype(self.dim() == 0 || is_ordered_number(self), "kthvalue_cpu", self.scalar_type());
  return meta_ranked(self, dim, keepdim, "kthvalue()");
}

// Drops the reduced dimension of an output that still has it with size 1, without a warning, as on the CPU.
void drop_reduced_dim(const at::Tensor& out, const at::Tensor& self, int64_t dim, bool keepdim) {
  if (keepdim || self.dim() == 0 || out.dim() != self.dim()) {
    return;
  }
  c10::DimVector reduced(self.sizes());
  const int64_t wrapped = at::maybe_wrap_dim(dim, self.dim());
  reduced[static_cast<size_t>(wrapped)] = 1;
  if (out.sizes() == c10::IntArrayRef(reduced)) {
    out.squeeze_(wrapped);
  }
}

const auto kKthvalue = unstructured_operator<meta_kthvalue, op::kthvalue>(&cpu::kthvalue_outf);

std::tuple<at::Tensor&, at::Tensor&> kthvalue_out(const at::Tensor& self, int64_t k, int64_t dim, bool keepdim,
                                                  at::Tensor& values, at::Tensor& indices) {
  drop_reduced_dim(values, self, dim, keepdim);
  drop_reduced_dim(indices, self, dim, keepdim);
  return kKthvalue.out(self, k, dim, keepdim, values, indices);
}

std::array<OutputSpec, 2> meta_mode(const at::Tensor& self, int64_t dim, bool keepdim) {
  require_dtype(!self.is_complex() || self.dim() == 0, "mode_cpu", self.scalar_type());
  auto specs = meta_ranked(self, dim, keepdim, "mode()");
  specs[0].quiet = specs[1].quiet = self.dim() == 0;
  return specs;
}

using MaybeSide = std::optional<std::string_view>;

// Throws c10::Error for wrong operands. Blocks if there is a sorter, because PyTorch checks its values on every device.
void check_search(const at::Tensor& sequence, const at::Tensor& values, bool out_int32, bool right,
                  const MaybeSide& side, MaybeTensor sorter) {
  const at::Tensor output = at::empty({0}, out_int32 ? at::kInt : at::kLong);  // only its dtype is read
  at::native::searchsorted_pre_check(sequence, values, output, out_int32, right, side, sorter.value_or(at::Tensor()));
  if (values.numel() == 0) {
    return;  // no kernel checks the dtype
  }
  const c10::ScalarType dtype = at::result_type(sequence, values);  // to which the kernel converts both
  require_dtype(!c10::isComplexType(dtype) && dtype != at::kBool, "searchsorted_out_cpu", dtype);
}

// Warns about operands that are not contiguous, because the kernel copies them.
void warn_of_copies(const at::Tensor& sequence, const at::Tensor& values, MaybeTensor sorter) {
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

OutputSpec meta_searchsorted(const at::Tensor& sequence, const at::Tensor& self, bool out_int32, bool right,
                             const MaybeSide& side, MaybeTensor sorter) {
  check_search(sequence, self, out_int32, right, side, sorter);
  if (self.numel() > 0) {
    warn_of_copies(sequence, self, sorter);
  }
  return output_of(self.sizes(), index_dtype(out_int32)).allowing({.elsewhere = true});
}

OutputSpec meta_searchsorted_scalar(const at::Tensor& sequence, const at::Scalar& self, bool out_int32, bool right,
                                    const MaybeSide& side, MaybeTensor sorter) {
  require_dtype(!self.isComplex(), "searchsorted_out_cpu", self.type());
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

OutputSpec meta_bucketize(const at::Tensor& self, const at::Tensor& boundaries, bool out_int32, bool right) {
  check_boundaries(boundaries);
  return meta_searchsorted(boundaries, self, out_int32, right, std::nullopt, std::nullopt);
}

OutputSpec meta_bucketize_scalar(const at::Scalar& self, const at::Tensor& boundaries, bool out_int32, bool right) {
  check_boundaries(boundaries);
  return meta_searchsorted_scalar(boundaries, self, out_int32, right, std::nullopt, std::nullopt);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  unstructured<meta_bucketize_scalar, op::bucketize_Scalar>(library, cpu::bucketize);
  unstructured<meta_bucketize, op::bucketize_Tensor>(library, cpu::bucketize_outf);
  function<op::kthvalue>(library, [](auto... args) { return kKthvalue.functional(args...); });
  function<op::kthvalue_values>(library, kthvalue_out);
  unstructured<meta_median, op::median>(library, cpu::median);
  unstructured<meta_median_dim, op::median_dim>(library, cpu::median_outf);
  unstructured<meta_mode, op::mode>(library, at::native::mode_out);
  unstructured<meta_median, op::nanmedian>(library, cpu::nanmedian);
  unstructured<meta_median_dim, op::nanmedian_dim>(library, cpu::nanmedian_outf);
  unstructured<meta_searchsorted_scalar, op::searchsorted_Scalar>(library, cpu::searchsorted_outf);
  unstructured<meta_searchsorted, op::searchsorted_Tensor>(library, cpu::searchsorted_outf);
  structured<meta::structured_sort_stable, op::sort_stable>(library, cpu::sort_outf,
                                                            checked(KernelTraits{.overlap = kNotItselfNoPart}));
  structured<meta::structured_topk, op::topk>(library, cpu::topk_outf, checked(KernelTraits{.overlap = kNotItself}));
}

}  // namespace

}  // namespace openreg::ops
