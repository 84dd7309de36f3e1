// SPDX-License-Identifier: BSD-3-Clause
// Reductions: sums, products, extrema, norms, variance. Medians, modes and other ranks are in
// operators/sorting/sorting.cpp.
#include <ATen/MemoryOverlap.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/ops/sum.h>

#include "kernels/sum.h"
#include "launch/raw_operands.h"
#include "registration/declare.h"
#include "support/kernel_choice.h"
#include "support/torch_versions.h"

namespace openreg::ops {

namespace {

using at::native::get_dtype_from_self;

template <bool kIsMax>
OutputSpec meta_extremum(const at::Tensor& self) {
  TORCH_CHECK(self.numel() > 0, kIsMax ? "max" : "min",
              "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
              "'dim' argument.");
  require_dtype(!self.is_complex(), kIsMax ? "max_all" : "min_all", self.scalar_type());
  return scalar_output(self.scalar_type()).allowing({.casts = true, .overlaps = true});
}

// Throws c10::Error if the output has an integral dtype, which cannot represent a mean. The kernel detects this, too,
// but too late to throw on the calling line.
void check_mean(const at::Tensor& self, at::OptionalIntArrayRef /*dims*/, bool /*keepdim*/,
                std::optional<c10::ScalarType> dtype, at::Tensor& out) {
  TORCH_CHECK(!at::isIntegralType(out.scalar_type(), /*includeBool=*/true), "result type ",
              dtype.value_or(self.scalar_type()), " can't be cast to the desired output type ", out.scalar_type());
}

// Launches our own kernel and returns true. Returns false for operands that it does not support: complex ones, those
// that are converted first, and those that may overlap the output.
bool launch_raw_sum(c10::Device device, const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                    std::optional<c10::ScalarType> /*dtype*/, at::Tensor& out) {
  if (!raw::sum_supports(self.scalar_type(), out.scalar_type()) ||
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
             raw::SumArguments{self.scalar_type(), out.scalar_type(), kernel_address(self), mutable_kernel_address(out),
                               merged_axes<2>(kept_sizes, {kept_strides, out_strides}, AxisOrder::kByStride),
                               merged_axes<1>(reduced_sizes, {reduced_strides}, AxisOrder::kByStride)},
             reads(self), writes(out));
  return true;
}

constexpr auto check_order = [](const at::Tensor& /*self*/, const std::optional<at::Scalar>& order,
                                auto... /*arguments*/) {
  TORCH_CHECK(!order.has_value() || !order->isComplex(), "norm: expected the order to be a real number, but got ",
              *order);
};

OutputSpec meta_nansum(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                       std::optional<c10::ScalarType> dtype) {
  return reduced_output(self, dims, keepdim, get_dtype_from_self(self, dtype, true))
      .allowing({.casts = !dtype.has_value() && !self.is_complex(), .overlaps = true, .expands = true});
}

// Supports complex numbers, too, as a GPU's kernel does and the CPU's does not.
at::Tensor& nansum_kernel(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                          std::optional<c10::ScalarType> dtype, at::Tensor& out) {
  if (self.is_complex()) {
    return at::sum_out(out, self.masked_fill(self.isnan(), 0), dims, keepdim, dtype);
  }
  return cpu::nansum_outf(self, dims, keepdim, dtype, out);
}

const auto kNansum = unstructured_operator<meta_nansum, op::nansum>(&nansum_kernel);

at::Tensor nansum(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                  std::optional<c10::ScalarType> dtype) {
  return at::isIntegralType(self.scalar_type(), true) ? at::sum(self, dims, keepdim, dtype)
                                                      : kNansum.functional(self, dims, keepdim, dtype);
}

at::Tensor& nansum_out(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                       std::optional<c10::ScalarType> dtype, at::Tensor& out) {
  if (at::isIntegralType(self.scalar_type(), true)) {
    return at::sum_out(out, self, dims, keepdim, dtype);
  }
  require_dtype(!at::isIntegralType(out.scalar_type(), true), "nansum_cpu", out.scalar_type());
  return kNansum.out(self, dims, keepdim, dtype, out);
}

OutputSpec meta_prod(const at::Tensor& self, std::optional<c10::ScalarType> dtype) {
  return scalar_output(get_dtype_from_self(self, dtype, true));
}

OutputSpec meta_trace(const at::Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  return scalar_output(get_dtype_from_self(self, std::nullopt, true));
}

// Supports booleans, too, which the CPU's kernel does not count.
at::Tensor trace_kernel(const at::Tensor& self) {
  return cpu::trace(self.scalar_type() == at::kBool ? self.to(at::kLong) : self);
}

OutputSpec meta_count_nonzero(const at::Tensor& self, c10::IntArrayRef dims) {
  return reduced_output(self, dims, false, at::kLong);
}

// Returns the specification of a standard deviation or variance. `name` is for the warning, and `subject` for the error
// message.
OutputSpec meta_std_var_of(const at::Tensor& self, at::OptionalIntArrayRef dims,
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
               !at::isReducedFloatingType(self.scalar_type());  // the cases in which the CPU's kernel casts
  spec.overlaps = true;
  spec.expands = !self.is_complex();  // complex parts are added into the output
  return spec;
}
template <bool kIsStd>
OutputSpec meta_std_var(const at::Tensor& self, at::OptionalIntArrayRef dims,
                        const std::optional<at::Scalar>& correction, bool keepdim) {
  return meta_std_var_of(self, dims, correction, keepdim, kIsStd ? "std" : "var", "std and var");
}
template <bool kIsStd>
std::array<OutputSpec, 2> meta_std_var_mean(const at::Tensor& self, at::OptionalIntArrayRef dims,
                                            const std::optional<at::Scalar>& correction, bool keepdim) {
  constexpr const char* kName = kIsStd ? "std_mean" : "var_mean";
  return {meta_std_var_of(self, dims, correction, keepdim, kName, kName),
          reduced_output(self, dims, keepdim, self.scalar_type())};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  constexpr KernelTraits kNotOverItself{.overlap = kNotItself};
  structured<meta::structured_all, op::all>(library, cpu::all_outf, kChecked);
  structured<meta::structured_all_dim, op::all_dim>(library, cpu::all_outf, kChecked);
  structured<meta::structured_all_dims, op::all_dims>(library, cpu::all_outf);
  structured<meta::structured_amax, op::amax>(library, cpu::amax_outf, checked(kNoComplex));
  structured<meta::structured_amin, op::amin>(library, cpu::amin_outf, checked(kNoComplex));
  structured<meta::structured_aminmax, op::aminmax>(library, cpu::aminmax_outf,
                                                    {.refused = kComplex, .overlap = kNotItself});
  structured<meta::structured_any, op::any>(library, cpu::any_outf, kChecked);
  structured<meta::structured_any_dim, op::any_dim>(library, cpu::any_outf, kChecked);
  structured<meta::structured_any_dims, op::any_dims>(library, cpu::any_outf);
  structured<meta::structured_argmax, op::argmax>(library, cpu::argmax_outf, kChecked);
  structured<meta::structured_argmin, op::argmin>(library, cpu::argmin_outf, kChecked);
  unstructured<meta_count_nonzero, op::count_nonzero_dim_IntList>(library, cpu::count_nonzero);
  structured<meta::structured_hash_tensor, op::hash_tensor>(library, cpu::hash_tensor_outf, kNoComplex);
  unstructured<meta_extremum<true>, op::max>(library, cpu::max_outf, kChecked);
  structured<meta::structured_max_dim, op::max_dim>(library, cpu::max_outf, checked(kNotOverItself));
  structured<meta::structured_mean_dim, op::mean_dim>(library, cpu::mean_outf, checked(kNotOverItself),
                                                      {.check_outputs = check_mean});
  unstructured<meta_extremum<false>, op::min>(library, cpu::min_outf, kChecked);
  structured<meta::structured_min_dim, op::min_dim>(library, cpu::min_outf, checked(kNotOverItself));
  function<op::nansum>(library, nansum);
  function<op::nansum_out>(library, nansum_out);
  structured<meta::structured_norm_ScalarOpt_dim, op::norm_ScalarOpt_dim>(library, cpu::norm_outf, {},
                                                                          {.check = check_order});
  // Lists all dtypes, because the kernel may reject the dtype that the caller requests.
  structured<meta::structured_norm_ScalarOpt_dim_dtype, op::norm_ScalarOpt_dim_dtype>(
      library, cpu::norm_outf, {.refused = kNotFloating | kFloating}, {.check = check_order});
  unstructured<meta_prod, op::prod>(library, cpu::prod);
  structured<meta::structured_prod_dim_int, op::prod_dim_int>(library, cpu::prod_outf, kChecked);
  structured<meta::structured_renorm, op::renorm, op::renorm_>(
      library, cpu::renorm_outf, {.refused = kBoolean | kIntegers, .overlap = kNotItselfNoPart});
  unstructured<meta_std_var<true>, op::std_correction>(library, cpu::std_outf, kChecked);
  unstructured<meta_std_var_mean<true>, op::std_mean_correction>(library, cpu::std_mean, kChecked);
  structured<meta::structured_sum_dim_IntList, op::sum_dim_IntList>(
      library, cpu::sum_outf, kChecked, {.launch_own = raw_kernels_chosen() ? launch_raw_sum : nullptr});
  unstructured<meta_trace, op::trace>(library, trace_kernel);
  unstructured<meta_std_var<false>, op::var_correction>(library, cpu::var_outf, kChecked);
  unstructured<meta_std_var_mean<false>, op::var_mean_correction>(library, cpu::var_mean, kChecked);
}

}  // namespace

}  // namespace openreg::ops
