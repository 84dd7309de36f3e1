// SPDX-License-Identifier: BSD-3-Clause
// Reductions that are not structured: extrema, median, mode, product, variance.
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/ops/count_nonzero_cpu_dispatch.h>
#include <ATen/ops/count_nonzero_ops.h>
#include <ATen/ops/kthvalue_cpu_dispatch.h>
#include <ATen/ops/kthvalue_ops.h>
#include <ATen/ops/max_cpu_dispatch.h>
#include <ATen/ops/max_ops.h>
#include <ATen/ops/median_cpu_dispatch.h>
#include <ATen/ops/median_ops.h>
#include <ATen/ops/min_cpu_dispatch.h>
#include <ATen/ops/min_ops.h>
#include <ATen/ops/mode_native.h>
#include <ATen/ops/mode_ops.h>
#include <ATen/ops/nanmedian_cpu_dispatch.h>
#include <ATen/ops/nanmedian_ops.h>
#include <ATen/ops/nansum_cpu_dispatch.h>
#include <ATen/ops/nansum_ops.h>
#include <ATen/ops/prod_cpu_dispatch.h>
#include <ATen/ops/prod_ops.h>
#include <ATen/ops/std_cpu_dispatch.h>
#include <ATen/ops/std_mean_cpu_dispatch.h>
#include <ATen/ops/std_mean_ops.h>
#include <ATen/ops/std_ops.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/trace_cpu_dispatch.h>
#include <ATen/ops/trace_ops.h>
#include <ATen/ops/var_cpu_dispatch.h>
#include <ATen/ops/var_mean_cpu_dispatch.h>
#include <ATen/ops/var_mean_ops.h>
#include <ATen/ops/var_ops.h>
#include <torch/library.h>

#include "common/described.h"
#include "common/torch_versions.h"

namespace openreg::ops {

namespace {

using at::native::get_dtype_from_self;
using Pair = std::array<OutputSpec, 2>;

OutputSpec describe_extremum(const at::Tensor& self, const char* name, const char* kernel) {
  TORCH_CHECK(self.numel() > 0, name,
              "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
              "'dim' argument.");
  require_dtype(!self.is_complex(), kernel, self.scalar_type());
  OutputSpec spec = scalar_output(self.scalar_type());
  spec.casts = true;
  spec.overlaps = true;
  return spec;
}
OutputSpec describe_max(const at::Tensor& self) {
  return describe_extremum(self, "max", "max_all");
}
OutputSpec describe_min(const at::Tensor& self) {
  return describe_extremum(self, "min", "min_all");
}

bool is_ordered_number(const at::Tensor& tensor) {
  return !tensor.is_complex() && tensor.scalar_type() != at::kBool;
}

// The value at a rank along a dimension, and its index.
Pair describe_ranked(const at::Tensor& self, int64_t dim, bool keepdim, const char* name) {
  at::native::zero_numel_check_dims(self, at::maybe_wrap_dim(dim, self.dim()), name);
  return {reduced_output(self, dim, keepdim, self.scalar_type()), reduced_output(self, dim, keepdim, at::kLong)};
}

OutputSpec describe_median(const at::Tensor& self) {
  require_dtype(is_ordered_number(self), "median_cpu", self.scalar_type());
  return scalar_output(self.scalar_type());
}

Pair describe_median_dim(const at::Tensor& self, int64_t dim, bool keepdim) {
  require_dtype(is_ordered_number(self), "median_out", self.scalar_type());
  return describe_ranked(self, dim, keepdim, "median()");
}

Pair describe_kthvalue(const at::Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  const int64_t wrapped = at::maybe_wrap_dim(dim, self.dim());
  const int64_t size = self.dim() > 0 ? self.size(wrapped) : 1;
  at::native::zero_numel_check_dims(self, wrapped, "kthvalue()");
  TORCH_CHECK(k >= 1 && k <= size, "kthvalue(): selected number k out of range for dimension ", wrapped);
  require_dtype(self.dim() == 0 || is_ordered_number(self), "kthvalue_cpu", self.scalar_type());
  return describe_ranked(self, dim, keepdim, "kthvalue()");
}

// An output that still has the dimension that is reduced loses it without a warning, as on the CPU.
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

OPENREG_DESCRIBED_SPEC(kthvalue, kthvalue_values, at::cpu::kthvalue_outf, describe_kthvalue)

std::tuple<at::Tensor&, at::Tensor&> kthvalue_out(const at::Tensor& self, int64_t k, int64_t dim, bool keepdim,
                                                  at::Tensor& values, at::Tensor& indices) {
  drop_reduced_dim(values, self, dim, keepdim);
  drop_reduced_dim(indices, self, dim, keepdim);
  return DescribedOf<Spec_kthvalue>::out(self, k, dim, keepdim, values, indices);
}

Pair describe_mode(const at::Tensor& self, int64_t dim, bool keepdim) {
  require_dtype(!self.is_complex() || self.dim() == 0, "mode_cpu", self.scalar_type());
  Pair specs = describe_ranked(self, dim, keepdim, "mode()");
  specs[0].quiet = specs[1].quiet = self.dim() == 0;
  return specs;
}

OutputSpec describe_prod(const at::Tensor& self, std::optional<c10::ScalarType> dtype) {
  return scalar_output(get_dtype_from_self(self, dtype, true));
}

OutputSpec describe_nansum(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                           std::optional<c10::ScalarType> dtype) {
  OutputSpec spec = reduced_output(self, dims, keepdim, get_dtype_from_self(self, dtype, true));
  spec.casts = !dtype.has_value() && !self.is_complex();
  spec.overlaps = spec.expands = true;
  return spec;
}

// The CPU's kernel takes no complex numbers; a GPU's does.
at::Tensor& nansum_kernel(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                          std::optional<c10::ScalarType> dtype, at::Tensor& out) {
  if (self.is_complex()) {
    return at::sum_out(out, self.masked_fill(self.isnan(), 0), dims, keepdim, dtype);
  }
  return at::cpu::nansum_outf(self, dims, keepdim, dtype, out);
}

OPENREG_DESCRIBED_SPEC(nansum, nansum_out, nansum_kernel, describe_nansum)

at::Tensor nansum(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                  std::optional<c10::ScalarType> dtype) {
  return at::isIntegralType(self.scalar_type(), true)
             ? at::sum(self, dims, keepdim, dtype)
             : DescribedOf<Spec_nansum>::functional(self, dims, keepdim, dtype);
}

at::Tensor& nansum_out(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                       std::optional<c10::ScalarType> dtype, at::Tensor& out) {
  if (at::isIntegralType(self.scalar_type(), true)) {
    return at::sum_out(out, self, dims, keepdim, dtype);
  }
  require_dtype(!at::isIntegralType(out.scalar_type(), true), "nansum_cpu", out.scalar_type());
  return DescribedOf<Spec_nansum>::out(self, dims, keepdim, dtype, out);
}

OutputSpec describe_trace(const at::Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  return scalar_output(get_dtype_from_self(self, std::nullopt, true));
}

// Of booleans, too, which the CPU's kernel does not count.
at::Tensor trace_kernel(const at::Tensor& self) {
  return at::cpu::trace(self.scalar_type() == at::kBool ? self.to(at::kLong) : self);
}

OutputSpec describe_count_nonzero(const at::Tensor& self, c10::IntArrayRef dims) {
  return reduced_output(self, dims, false, at::kLong);
}

// Names stand in messages and in the warning.
OutputSpec describe_spread(const at::Tensor& self, at::OptionalIntArrayRef dims,
                           const std::optional<at::Scalar>& correction, bool keepdim, const char* name,
                           const char* subject) {
  OPENREG_CHECK_IMPLEMENTED_SINCE_15(self.is_floating_point() || self.is_complex(), subject,
                                     " only support floating point and complex dtypes");
  OutputSpec spec = reduced_output(self, dims, keepdim, c10::toRealValueType(self.scalar_type()));
  const int64_t results = c10::multiply_integers(spec.sizes);
  const double factor = results > 0 ? static_cast<double>(self.numel()) / static_cast<double>(results) : 1;
  if (results > 0 && factor - correction.value_or(1).toDouble() <= 0) {
    TORCH_WARN(name,
               "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input "
               "numel divided by output numel).");
  }
  spec.casts = results != 1 || self.numel() == 0 ||
               !at::isReducedFloatingType(self.scalar_type());  // as far as the CPU's kernel does
  spec.overlaps = spec.expands = true;
  return spec;
}
OutputSpec describe_std(const at::Tensor& self, at::OptionalIntArrayRef dims,
                        const std::optional<at::Scalar>& correction, bool keepdim) {
  return describe_spread(self, dims, correction, keepdim, "std", "std and var");
}
OutputSpec describe_var(const at::Tensor& self, at::OptionalIntArrayRef dims,
                        const std::optional<at::Scalar>& correction, bool keepdim) {
  return describe_spread(self, dims, correction, keepdim, "var", "std and var");
}
Pair describe_std_mean(const at::Tensor& self, at::OptionalIntArrayRef dims,
                       const std::optional<at::Scalar>& correction, bool keepdim) {
  return {describe_spread(self, dims, correction, keepdim, "std_mean", "std_mean"),
          reduced_output(self, dims, keepdim, self.scalar_type())};
}
Pair describe_var_mean(const at::Tensor& self, at::OptionalIntArrayRef dims,
                       const std::optional<at::Scalar>& correction, bool keepdim) {
  return {describe_spread(self, dims, correction, keepdim, "var_mean", "var_mean"),
          reduced_output(self, dims, keepdim, self.scalar_type())};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_DESCRIBED(library, count_nonzero_dim_IntList, at::cpu::count_nonzero, describe_count_nonzero)
  library.impl("kthvalue", &DescribedOf<Spec_kthvalue>::functional);
  library.impl("kthvalue.values", TORCH_FN(kthvalue_out));
  OPENREG_DESCRIBED_OUT(library, max, max_unary_out, at::cpu::max_outf, describe_max)
  OPENREG_DESCRIBED(library, median, at::cpu::median, describe_median)
  OPENREG_DESCRIBED_OUT(library, median_dim, median_dim_values, at::cpu::median_outf, describe_median_dim)
  OPENREG_DESCRIBED_OUT(library, min, min_unary_out, at::cpu::min_outf, describe_min)
  OPENREG_DESCRIBED_OUT(library, mode, mode_values, at::native::mode_out, describe_mode)
  OPENREG_DESCRIBED(library, nanmedian, at::cpu::nanmedian, describe_median)
  OPENREG_DESCRIBED_OUT(library, nanmedian_dim, nanmedian_dim_values, at::cpu::nanmedian_outf, describe_median_dim)
  OPENREG_DESCRIBED(library, prod, at::cpu::prod, describe_prod)
  OPENREG_DESCRIBED_OUT(library, std_correction, std_correction_out, at::cpu::std_outf, describe_std)
  OPENREG_DESCRIBED(library, std_mean_correction, at::cpu::std_mean, describe_std_mean)
  OPENREG_DESCRIBED(library, trace, trace_kernel, describe_trace)
  OPENREG_DESCRIBED_OUT(library, var_correction, var_correction_out, at::cpu::var_outf, describe_var)
  OPENREG_DESCRIBED(library, var_mean_correction, at::cpu::var_mean, describe_var_mean)
  library.impl("nansum", TORCH_FN(nansum));
  library.impl("nansum.out", TORCH_FN(nansum_out));
}

}  // namespace

}  // namespace openreg::ops
