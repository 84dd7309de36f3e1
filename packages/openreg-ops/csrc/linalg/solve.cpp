// SPDX-License-Identifier: BSD-3-Clause
// Systems of linear equations: of general, symmetric and triangular matrices, least squares, and inverses.
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_lstsq.h>

#include "declare/declare.h"
#include "linalg/outputs.h"
#include "openreg/runtime/capture.h"

namespace openreg::ops {

namespace {

OutputSpec describe_solve_triangular(const at::Tensor& self, const at::Tensor& b, bool /*upper*/, bool left,
                                     bool /*unitriangular*/) {
  constexpr const char* kName = "linalg.solve_triangular";
  at::native::checkInputsSolver(self, b, left, kName);
  TORCH_CHECK(self.scalar_type() == b.scalar_type(), kName,
              ": Expected A and B to have the same dtype, but found A of ", "type ", self.scalar_type(),
              " and B of type ", b.scalar_type(), " instead");
  require_lapack_dtype("triangular_solve_cpu", self.scalar_type());
  const auto sizes = std::get<1>(at::native::_linalg_broadcast_batch_dims(self, b));
  OutputSpec spec = column_major(sizes, b.scalar_type());
  spec.casts = false;
  spec.elementwise = true;
  return spec;
}

// What linalg_lstsq() computes, known from its arguments.
struct LeastSquares {
  std::string driver;
  bool is_vector = false;
  c10::DimVector solution;
  c10::DimVector residuals;
  c10::DimVector rank;
  c10::DimVector singular_values;

  bool needs_full_rank() const { return !residuals.empty() && residuals != c10::DimVector{0} && driver != "gels"; }
};

// The residuals of gelsd and gelss exist only for a matrix of full rank, which the kernel finds out.
LeastSquares describe_lstsq(const at::Tensor& self, const at::Tensor& b, std::optional<std::string_view> driver) {
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
  LeastSquares result;
  result.is_vector = at::native::linalg_solve_is_vector_rhs(self, b);
  const at::Tensor columns = result.is_vector ? b.unsqueeze(-1) : b;
  TORCH_CHECK(self.size(-2) == columns.size(-2), kName, ": input.size(-2) should match other.size(",
              result.is_vector ? -1 : -2, ")");
  result.driver = driver.value_or("gelsy");
  const bool is_known =
      result.driver == "gels" || result.driver == "gelsy" || result.driver == "gelsd" || result.driver == "gelss";
  TORCH_CHECK(is_known, kName, ": parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
  const int64_t m = self.size(-2);
  const int64_t n = self.size(-1);
  const auto broadcast = std::get<1>(at::native::_linalg_broadcast_batch_dims(self, columns));
  const c10::DimVector batch(c10::IntArrayRef(broadcast).slice(0, broadcast.size() - 2));
  const auto with_batch = [&](std::initializer_list<int64_t> sizes) {
    c10::DimVector all = batch;
    all.append(sizes);
    return all;
  };
  result.solution = result.is_vector ? with_batch({n}) : with_batch({n, columns.size(-1)});
  result.residuals = m > n && result.driver != "gelsy" ? with_batch({columns.size(-1)}) : c10::DimVector{0};
  result.rank = result.driver == "gels" ? c10::DimVector{0} : batch;
  const bool has_singular_values = result.driver == "gelsd" || result.driver == "gelss";
  result.singular_values = has_singular_values ? with_batch({std::min(m, n)}) : c10::DimVector{0};
  return result;
}

void lstsq_kernel(const at::Tensor& self, const at::Tensor& b, std::optional<double> rcond,
                  std::optional<std::string_view> driver, at::Tensor& solution, at::Tensor& residuals, at::Tensor& rank,
                  at::Tensor& singular_values) {
  if (self.numel() == 0) {
    // The CPU resizes the outputs on its way, which aliases do not allow.
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

using FourTensors = std::tuple<at::Tensor&, at::Tensor&, at::Tensor&, at::Tensor&>;

constexpr Operator kLstsq{"aten::linalg_lstsq", {.verdict = Verdict::kAlways}};

FourTensors lstsq_out(const at::Tensor& self, const at::Tensor& b, std::optional<double> rcond,
                      std::optional<std::string_view> driver, at::Tensor& solution, at::Tensor& residuals,
                      at::Tensor& rank, at::Tensor& singular_values) {
  const OperandsDevice device(kLstsq, self, b, solution, residuals, rank, singular_values);
  const LeastSquares expected = describe_lstsq(self, b, driver);
  if (expected.needs_full_rank()) {
    runtime::refuse_capture("linalg.lstsq with this driver", runtime::current_stream(device.index()));
  }
  const c10::ScalarType real = c10::toRealValueType(self.scalar_type());
  const auto prepare = [&](const at::Tensor& out, const c10::DimVector& sizes, c10::ScalarType dtype) {
    OutputSpec spec = output_of(sizes, dtype);
    spec.casts = true;
    prepare_described(out, spec, device);
  };
  if (expected.is_vector) {
    prepare(solution, expected.solution, self.scalar_type());
  } else {
    prepare_described(solution, column_major(expected.solution, self.scalar_type()), device);
  }
  prepare(residuals, expected.residuals, real);
  prepare(rank, expected.rank, at::kLong);
  prepare(singular_values, expected.singular_values, real);
  launch_described<4>(kLstsq, device, &lstsq_kernel, {solution, residuals, rank, singular_values}, self, b, rcond,
                      std::optional<std::string_view>(expected.driver));
  if (expected.needs_full_rank() && !rank.eq(self.size(-1)).all().item<bool>()) {
    residuals.resize_({0});
  }
  return FourTensors(solution, residuals, rank, singular_values);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  structured<meta::structured__linalg_solve_ex, op::_linalg_solve_ex>(
      library, cpu::_linalg_solve_ex_outf, {.refused = kReduced, .verdict = Verdict::kIfAsked, .overlap = kNotItself});
  structured<meta::structured_linalg_inv_ex, op::linalg_inv_ex>(library, cpu::linalg_inv_ex_outf,
                                                                {.verdict = Verdict::kIfAsked, .overlap = kNotItself});
  structured<meta::structured_linalg_ldl_factor_ex, op::linalg_ldl_factor_ex>(
      library, cpu::linalg_ldl_factor_ex_outf,
      {.refused = kReduced, .verdict = Verdict::kIfAsked, .overlap = kNotItself});
  structured<meta::structured_linalg_ldl_solve, op::linalg_ldl_solve>(library, cpu::linalg_ldl_solve_outf,
                                                                      {.refused = kReduced, .overlap = kNotItself});
  function<op::linalg_lstsq_out>(library, lstsq_out, kLstsq.rule);
  structured<meta::structured_linalg_lu_factor_ex, op::linalg_lu_factor_ex>(
      library, cpu::linalg_lu_factor_ex_outf,
      {.refused = kBoolean | kIntegers | kReduced, .verdict = Verdict::kIfAsked, .overlap = kNotItself});
  structured<meta::structured_linalg_lu_solve, op::linalg_lu_solve>(library, cpu::linalg_lu_solve_outf,
                                                                    {.refused = kReduced, .overlap = kNotItself});
  described<describe_solve_triangular, op::linalg_solve_triangular>(library, cpu::linalg_solve_triangular_outf);
  structured<meta::structured_triangular_solve, op::triangular_solve>(
      library, cpu::triangular_solve_outf, {.refused = kBoolean | kIntegers | kReduced, .overlap = kNotItself},
      {.check = [](auto... /*arguments*/) {
        TORCH_WARN_ONCE(
            "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangular and will be removed in a "
            "future "
            "PyTorch release; torch.triangular_solve(B, A).solution is torch.linalg.solve_triangular(A, B, "
            "upper=True)");
      }});
}

}  // namespace

}  // namespace openreg::ops
