// SPDX-License-Identifier: BSD-3-Clause
#include "common/operand_dtypes.h"

#include <algorithm>
#include <unordered_map>

#include "common/torch_versions.h"

namespace openreg::ops {

namespace {

struct Refusal {
  DtypeSet dtypes;
  std::string_view ops;  // separated by spaces
};

// Measured on the CPU's kernels; test_operand_dtypes.py measures again and names what differs.
constexpr Refusal kRefusals[] = {
    {kBoolean | kIntegers | kComplex,
     "_adaptive_avg_pool2d _adaptive_avg_pool3d _log_softmax _log_softmax_backward_data "
     "_native_batch_norm_legit.no_stats _prelu_kernel _softmax _softmax_backward_data "
     "_upsample_bicubic2d_aa_backward _upsample_bilinear2d_aa_backward _upsample_lanczos2d_aa_backward "
     "_upsample_nearest_exact1d_backward _upsample_nearest_exact2d_backward "
     "_upsample_nearest_exact3d_backward adaptive_max_pool2d adaptive_max_pool2d_backward adaptive_max_pool3d "
     "adaptive_max_pool3d_backward binary_cross_entropy binary_cross_entropy_backward elu elu_backward frac "
     "fractional_max_pool2d fractional_max_pool2d_backward fractional_max_pool3d gelu gelu_backward glu "
     "grid_sampler_2d grid_sampler_3d hardshrink hardshrink_backward hardsigmoid hardsigmoid_backward "
     "hardswish hardswish_ hardswish_backward huber_loss huber_loss_backward hypot igamma igammac leaky_relu "
     "leaky_relu_backward log_sigmoid_forward logaddexp2 logit_backward max_pool2d_with_indices_backward "
     "max_unpool2d max_unpool3d mish mse_loss multi_margin_loss multilabel_margin_loss_forward "
     "native_batch_norm native_group_norm native_layer_norm nextafter nll_loss2d_backward nll_loss2d_forward "
     "nll_loss_backward nll_loss_forward round.decimals segment_reduce smooth_l1_loss softplus "
     "softplus_backward softshrink softshrink_backward upsample_bicubic2d_backward "
     "upsample_bilinear2d_backward upsample_linear1d upsample_linear1d_backward upsample_nearest1d_backward "
     "upsample_nearest2d_backward upsample_nearest3d_backward upsample_trilinear3d "
     "upsample_trilinear3d_backward"},
    {kComplex,
     "amax amin aminmax atan2 clamp clamp_max clamp_max.Tensor clamp_min clamp_min.Tensor copysign.Tensor "
     "digamma erf erfc erfinv ge.Scalar ge.Tensor gt.Scalar gt.Tensor hash_tensor i0 index_reduce le.Scalar le.Tensor "
     "lgamma lt.Scalar lt.Tensor polygamma scatter_reduce.two:amax scatter_reduce.two:amin sign signbit "
     "special_entr special_i0e special_i1 special_i1e special_xlog1py xlogy.Tensor"},
    {kReduced | kComplex,
     "special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 "
     "special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v "
     "special_chebyshev_polynomial_w special_erfcx special_hermite_polynomial_h "
     "special_hermite_polynomial_he special_laguerre_polynomial_l special_legendre_polynomial_p "
     "special_log_ndtr special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0 "
     "special_modified_bessel_k1 special_ndtri special_scaled_modified_bessel_k0 "
     "special_scaled_modified_bessel_k1 special_shifted_chebyshev_polynomial_t "
     "special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v "
     "special_shifted_chebyshev_polynomial_w special_spherical_bessel_j0 special_zeta"},
    {kBoolean,
     "index_reduce addcmul addmm addmv baddbmm bmm convolution_overrideable linalg_cross mm pow.Tensor_Tensor "
     "reflection_pad1d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d "
     "scatter_reduce.two:mean linear reflection_pad2d"},
    {kBoolean | kComplex,
     "_addmm_activation ceil clamp.Tensor div.Tensor_mode:floor div.Tensor_mode:trunc floor fmod.Tensor "
     "max_pool2d_with_indices remainder.Tensor round threshold threshold_backward trunc max_pool3d_with_indices"},
    {kBoolean | kSignedIntegers | kComplex,
     "_upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_lanczos2d_aa _upsample_nearest_exact1d "
     "_upsample_nearest_exact2d _upsample_nearest_exact3d upsample_bicubic2d upsample_bilinear2d "
     "upsample_nearest1d upsample_nearest2d upsample_nearest3d"},
    {kBoolean | kIntegers,
     "renorm lerp.Scalar lerp.Tensor logaddexp reflection_pad1d_backward reflection_pad3d_backward "
     "replication_pad1d_backward sigmoid_backward silu silu_backward tanh_backward"},
    {kBoolean | kIntegers | kFloating | kComplex, "norm.ScalarOpt_dim_dtype"},  // as the wanted dtype goes
    {kReduced,
     "_linalg_det _linalg_solve_ex _linalg_svd linalg_cholesky_ex linalg_ldl_factor_ex linalg_ldl_solve "
     "linalg_lu_solve linalg_qr _cdist_forward"},
    {kBoolean | kFloating | kComplex,
     "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo bitwise_left_shift.Tensor "
     "bitwise_right_shift.Tensor gcd lcm"},
    {kBoolean | kIntegers | kReduced, "_linalg_eigh linalg_lu linalg_lu_factor_ex triangular_solve"},
    {kBoolean | kShortIntegers | kComplex, "avg_pool2d avg_pool2d_backward avg_pool3d avg_pool3d_backward"},
    {kIntegers, "col2im convolution_overrideable im2col"},
    {kBoolean | kIntegers | kReduced | kComplex, "_ctc_loss _pdist_forward"},
#if !OPENREG_TORCH_HAS_HALF_POLAR
    {dtype_set(c10::ScalarType::Half), "polar"},
#endif
    {kFloating | kComplex, "bitwise_and.Tensor bitwise_not bitwise_or.Tensor bitwise_xor.Tensor"},
};

// Operators whose kernels take operands of one dtype only, and read others wrongly or refuse them.
constexpr std::string_view kOneDtype =
    "_log_softmax_backward_data _softmax_backward_data avg_pool2d_backward avg_pool3d_backward baddbmm "
    "bmm fractional_max_pool2d fractional_max_pool3d gelu_backward linalg_cross mm "
    "reflection_pad1d_backward reflection_pad3d_backward replication_pad1d_backward";

// The same beside indices.
constexpr std::string_view kOneDtypeAndIndices =
    "adaptive_max_pool2d_backward adaptive_max_pool3d_backward fractional_max_pool2d_backward "
    "max_pool2d_with_indices_backward nll_loss_backward nll_loss_forward";

// Operators whose kernels judge the data.
struct Judges {
  Verdict verdict;
  std::string_view ops;
};
constexpr Judges kJudges[] = {
    {Verdict::kAlways, "_linalg_eigh _linalg_eigvals _linalg_svd linalg_eig linalg_lstsq"},
    {Verdict::kIfAsked, "_linalg_solve_ex linalg_cholesky_ex linalg_inv_ex linalg_ldl_factor_ex linalg_lu_factor_ex"},
    {Verdict::kOfFraction, "addmm"},  // where there is no product, the kernel scales the other operand
    {Verdict::kOfDivisor, "div.Tensor_mode fmod.Tensor remainder.Tensor"},
};

using Rules = std::unordered_map<std::string_view, KernelRule>;

// Calls `visit(op)` for each of the names.
template <class Visit>
void for_each_op(std::string_view ops, Visit visit) {
  while (!ops.empty()) {
    const size_t end = std::min(ops.find(' '), ops.size());
    visit(ops.substr(0, end));
    ops.remove_prefix(std::min(end + 1, ops.size()));
  }
}

Rules make_rules() {
  Rules rules;
  for (const Refusal& refusal : kRefusals) {
    for_each_op(refusal.ops, [&](std::string_view op) { rules[op].refused |= refusal.dtypes; });
  }
  for_each_op(kOneDtype, [&](std::string_view op) { rules[op].agreement = Agreement::kAll; });
  for_each_op(kOneDtypeAndIndices, [&](std::string_view op) { rules[op].agreement = Agreement::kAllButIndices; });
  for (const Judges& judges : kJudges) {
    for_each_op(judges.ops, [&](std::string_view op) { rules[op].verdict = judges.verdict; });
  }
  return rules;
}

const Rules& all_rules() {
  static const auto* const rules = new Rules(make_rules());
  return *rules;
}

constexpr std::string_view kNamespace = "aten::";

}  // namespace

const KernelRule& kernel_rule(std::string_view op) {
  static const KernelRule kNoRule;
  if (op.substr(0, kNamespace.size()) != kNamespace) {
    return kNoRule;
  }
  const auto found = all_rules().find(op.substr(kNamespace.size()));
  return found == all_rules().end() ? kNoRule : found->second;
}

bool has_mode_rules(std::string_view op) {
  return std::any_of(all_rules().begin(), all_rules().end(), [&](const auto& rule) {
    const std::string_view name = rule.first;
    return name.substr(0, name.find(':')).size() < name.size() &&
           op == std::string(kNamespace) + std::string(name.substr(0, name.find(':')));
  });
}

std::map<std::string, KernelRule> kernel_rules() {
  std::map<std::string, KernelRule> result;
  for (const auto& [op, rule] : all_rules()) {
    result.emplace(op, rule);
  }
  return result;
}

void refuse_second_dtype(const char* name, c10::ScalarType expected, c10::ScalarType found) {
  TORCH_CHECK(false, name, ": the operands should have the same dtype: expected scalar type ", expected, " but found ",
              found, "; convert the operand with .to(dtype)");
}

}  // namespace openreg::ops
