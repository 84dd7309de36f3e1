// SPDX-License-Identifier: BSD-3-Clause
// Solutions of systems of linear equations with general, symmetric and triangular matrices, least squares, and
// inverses.
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_lstsq.h>

#include "openreg/runtime/capture.h"
#include "operators/linalg/outputs.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

OutputSpec meta_solve_triangular(const at::Tensor& self, const at::Tensor& b, bool /*upper*/, bool left,
                                 bool /*unitriangular*/) {
  constexpr const char* kName = "linalg.solve_triangular";
  at::native::checkInputsSolver(self, b, left, kName);
  TORCH_CHECK(self.scalar_type() == b.scalar_type(), kName,
              ": Expected A and B to have the same dtype, but found A of ", "type ", self.scalar_type(),
              " and B of type ", b.scalar_type(), " instead");
  require_lapack_dtype("triangular_solve_cpu", self.scalar_type());
  const auto sizes = std::get<1>(at::native::_linalg_broadcast_batch_dims(self, b));
  return column_major(sizes, b.scalar_type()).allowing({.elementwise = true});
}

// Returns the specifications of solution, residuals, rank and singular values. With gelsd and gelss, residuals exist
// only for a matrix of full rank, which the kernel determines.
std::array<OutputSpec, 4> meta_lstsq(const at::Tensor& self, const at::Tensor& b, std::string_view driver) {
  constexpr const char* kName = "torch.linalg.lstsq";
  TORCH_CHECK(self.dim() >= 2, kName, ": input must have at least 2 dimensions.");
  TORCH_CHECK(b.dim() >= 1, kName, ": other must have at least 1 dimension.");
  TORCH_CHECK(self.scalar_type() == b.scalar_type(), kName,
              ": Expected input and other to have the same dtype, but got input's dtype ", self.scalar_type(),
              " and other's dtype ", b.scalar_type());
  at::native::checkFloatingOrComplex(self, kName, /*allow_low_precision_dtypes=*/false);
  const int64_t difference = self.dim() - b.dim();
  TORCH_CHECK(difference == 0 || difference == 1, kName,
              ": input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1");
  const bool is_vector = at::native::linalg_solve_is_vector_rhs(self, b);
  const at::Tensor columns = is_vector ? b.unsqueeze(-1) : b;
  TORCH_CHECK(self.size(-2) == columns.size(-2), kName, ": input.size(-2) should match other.size(",
              is_vector ? -1 : -2, ")");
  const bool has_singular_values = driver == "gelsd" || driver == "gelss";
  TORCH_CHECK(driver == "gels" || driver == "gelsy" || has_singular_values, kName,
              ": parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
  const int64_t m = self.size(-2);
  const int64_t n = self.size(-1);
  const c10::ScalarType dtype = self.scalar_type();
  const c10::ScalarType real = c10::toRealValueType(dtype);
  const auto broadcast = std::get<1>(at::native::_linalg_broadcast_batch_dims(self, columns));
  const auto casting = [&](bool in_batch, std::initializer_list<int64_t> sizes, c10::ScalarType of) {
    OutputSpec spec = output_of(c10::IntArrayRef(broadcast).slice(0, in_batch ? broadcast.size() - 2 : 0), of);
    spec.sizes.append(sizes);
    spec.casts = true;
    return spec;
  };
  return {
      is_vector ? casting(true, {n}, dtype) : column_major(casting(true, {n, columns.size(-1)}, dtype).sizes, dtype),
      m > n && driver != "gelsy" ? casting(true, {columns.size(-1)}, real) : casting(false, {0}, real),
      driver == "gels" ? casting(false, {0}, at::kLong) : casting(true, {}, at::kLong),
      has_singular_values ? casting(true, {std::min(m, n)}, real) : casting(false, {0}, real)};
}

void lstsq_kernel(const at::Tensor& self, const at::Tensor& b, std::optional<double> rcond,
                  std::optional<std::string_view> driver, at::Tensor& solution, at::Tensor& residuals, at::Tensor& rank,
                  at::Tensor& singular_values) {
  if (self.numel() == 0) {
    // The CPU's function resizes the outputs for an empty operand, which aliases do not allow.
    const auto [of_solution, of_residuals, of_rank, of_singular_values] = at::linalg_lstsq(self, b, rcond, driver);
    solution.copy_(of_solution);
    if (of_residuals.sizes() == residuals.sizes()) {
      residuals.copy_(of_residuals);
    }
    rank.copy_(of_rank);
    singular_values.copy_(of_singular_values);
    return;
  }
  at::Tensor found = at::empty({0}, residuals.options());
  at::cpu::linalg_lstsq_outf(self, b, rcond, driver, solution, found, rank, singular_values);
  if (found.sizes() == residuals.sizes()) {
    residuals.copy_(found);
  }
}

constexpr Operator kLstsq{"aten::linalg_lstsq", {.data_check = DataCheck::kAlways}};

OutResultOf<4> lstsq_out(const at::Tensor& self, const at::Tensor& b, std::optional<double> rcond,
                         std::optional<std::string_view> driver, at::Tensor& solution, at::Tensor& residuals,
                         at::Tensor& rank, at::Tensor& singular_values) {
  const OperandDeviceGuard device(kLstsq, self, b, solution, residuals, rank, singular_values);
  driver = driver.value_or("gelsy");
  const std::array<OutputSpec, 4> specs = meta_lstsq(self, b, *driver);
  const bool needs_full_rank = driver != "gels" && specs[1].sizes != c10::DimVector{0};
  if (needs_full_rank) {
    runtime::check_stream_not_capturing("linalg.lstsq with this driver", runtime::current_stream(device.index()));
  }
  const std::array<at::Tensor, 4> outputs{solution, residuals, rank, singular_values};
  for (size_t i = 0; i < outputs.size(); ++i) {
    prepare_out_argument(outputs[i], specs[i], device);
  }
  launch_out_kernel(kLstsq, device, &lstsq_kernel, outputs, self, b, rcond, driver);
  if (needs_full_rank && !rank.eq(self.size(-1)).all().item<bool>()) {
    residuals.resize_({0});
  }
  return {solution, residuals, rank, singular_values};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  structured<meta::structured__linalg_solve_ex, op::_linalg_solve_ex>(
      library, cpu::_linalg_solve_ex_outf,
      {.refused = kReduced, .data_check = DataCheck::kIfCheckErrors, .overlap = kNotItself});
  structured<meta::structured_linalg_inv_ex, op::linalg_inv_ex>(
      library, cpu::linalg_inv_ex_outf, {.data_check = DataCheck::kIfCheckErrors, .overlap = kNotItself});
  structured<meta::structured_linalg_ldl_factor_ex, op::linalg_ldl_factor_ex>(
      library, cpu::linalg_ldl_factor_ex_outf,
      {.refused = kReduced, .data_check = DataCheck::kIfCheckErrors, .overlap = kNotItself});
  structured<meta::structured_linalg_ldl_solve, op::linalg_ldl_solve>(
      library, cpu::linalg_ldl_solve_outf, checked(KernelTraits{.refused = kReduced, .overlap = kNotItself}));
  function<op::linalg_lstsq_out>(library, lstsq_out, kLstsq.traits);
  structured<meta::structured_linalg_lu_factor_ex, op::linalg_lu_factor_ex>(
      library, cpu::linalg_lu_factor_ex_outf,
      {.refused = kBoolean | kIntegers | kReduced, .data_check = DataCheck::kIfCheckErrors, .overlap = kNotItself});
  structured<meta::structured_linalg_lu_solve, op::linalg_lu_solve>(
      library, cpu::linalg_lu_solve_outf, checked(KernelTraits{.refused = kReduced, .overlap = kNotItself}));
  unstructured<meta_solve_triangular, op::linalg_solve_triangular>(library, cpu::linalg_solve_triangular_outf);
  structured<meta::structured_triangular_solve, op::triangular_solve>(
      library, cpu::triangular_solve_outf, {.refused = kBoolean | kIntegers | kReduced, .overlap = kNotItself},
      {.check_outputs = [](const at::Tensor& /*self*/, const at::Tensor& A, bool /*upper*/, bool /*transpose*/,
                           bool /*unitriangular*/, at::Tensor& X, at::Tensor& /*M*/) {
        at::assert_no_partial_overlap(X, A);
        TORCH_WARN_ONCE(
            "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangular and will be removed in a "
            "future PyTorch release; torch.triangular_solve(B, A).solution is torch.linalg.solve_triangular(A, B, "
            "upper=True)");
      }});
}

}  // namespace

}  // namespace openreg::ops
