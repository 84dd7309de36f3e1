// SPDX-License-Identifier: BSD-3-Clause
// Registers the autocast rules: the operators whose arguments autocast casts, and the dtype to which it casts them.
// Source: ATen/autocast_mode.h. Its operator lists (AT_FORALL_...) are those of every device with autocast, such as
// CUDA. Its macros (KERNEL_PRIVATEUSEONE) define the kernel of one rule.
//
// While autocast is enabled, the dispatcher calls a rule before autograd, so that the casts are differentiated, too. A
// rule casts the arguments that are floating-point tensors of this device, except float64, and calls the operator again
// with autocast excluded.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "torch_versions.h"

namespace openreg::amp {

namespace {

// PyTorch's macros contain signatures with these names, and `m.impl(...)`, which requires the name of the parameter
// below.
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;
using torch::Library;

// Rejects the operator. In half precision its logarithms overflow and its gradients vanish, and a cast to float32 comes
// too late, because the input has been rounded. The operator with logits has neither problem.
Tensor refuse_binary_cross_entropy(const Tensor& /*self*/, const Tensor& /*target*/,
                                   const std::optional<Tensor>& /*weight*/, int64_t /*reduction*/) {
  TORCH_CHECK(false,
              "binary_cross_entropy (torch.nn.BCELoss) is not safe under autocast on an openreg "
              "device: its argument, a probability, loses too much in half precision. Let the model "
              "return logits and use binary_cross_entropy_with_logits (torch.nn.BCEWithLogitsLoss), "
              "or compute the loss in float32 inside torch.autocast(\"openreg\", enabled=False).");
}

// Registers the rule for products: the arguments are cast to the autocast dtype. Casts of float32 parameters are cached
// until the outermost context ends, so that a weight that is used twice is cast once.
void register_lower_precision_rules(Library& m) {
#define OPENREG_RULE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(OPENREG_RULE)
  // CUDA's list has these two operators. PyTorch's macro does not, because the other devices have no rules for them.
  // This device has no kernels for them. With the rules its list equals CUDA's, which a test checks.
  OPENREG_RULE(cudnn_convolution)
  OPENREG_RULE(cudnn_convolution_transpose)
#undef OPENREG_RULE
}

// Registers the rule for operators that lose precision or overflow in half precision: the arguments are cast to
// float32.
void register_float32_rules(Library& m) {
#define OPENREG_RULE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(OPENREG_RULE)
#if OPENREG_TORCH_HAS_MATRIX_SQRTH
  OPENREG_RULE(linalg_matrix_sqrth)  // CUDA's list has it, and PyTorch's macro does not.
#endif
#undef OPENREG_RULE
}

// Registers the rule for operators with an argument `dtype`: it is set to float32, unless the caller passes a dtype.
void register_float32_result_rules(Library& m) {
#define OPENREG_RULE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
  AT_FORALL_FP32_SET_OPT_DTYPE(OPENREG_RULE)
#undef OPENREG_RULE
}

// Registers the rule for overloads without an argument `dtype` of operators that have it: they call the overload with
// `dtype`, which is set to float32. PyTorch's list contains the policy of each.
void register_float32_overload_rules(Library& m) {
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
}

// Registers the rule for operators that reject arguments of different dtypes: the arguments are cast to the widest
// dtype among them.
void register_promotion_rules(Library& m) {
#define OPENREG_RULE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_PROMOTE(OPENREG_RULE)
#undef OPENREG_RULE
}

// Registers the kernel that rejects binary_cross_entropy. Its backward operator is not rejected, because the gradient
// of a loss that was computed outside of the context may be computed inside.
void register_refusals(Library& m) {
  m.impl("binary_cross_entropy", &refuse_binary_cross_entropy);
}

// An operator without a rule runs in the dtypes of its arguments.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, library) {
  register_lower_precision_rules(library);
  register_float32_rules(library);
  register_float32_result_rules(library);
  register_float32_overload_rules(library);
  register_promotion_rules(library);
  register_refusals(library);
}

}  // namespace

}  // namespace openreg::amp
