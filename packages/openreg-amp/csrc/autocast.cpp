// SPDX-License-Identifier: BSD-3-Clause
// The autocast rules: which operators cast their arguments, and to what. Source: ATen/autocast_mode.h, whose operator
// lists (AT_FORALL_...) are those of every device with autocast, CUDA included, and whose macros (KERNEL_PRIVATEUSEONE)
// write the kernel of one rule.
//
// While autocast is enabled, an operator that gets a tensor of this device comes here first, before autograd sees it,
// so that the casts are differentiated too. A rule casts the arguments that are floating-point tensors of this device,
// apart from float64, and calls the operator again, with autocast excluded.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "torch_versions.h"

namespace openreg::amp {

namespace {

// PyTorch's macros write signatures with these names, and `m.impl(...)`, hence the name of the parameter below.
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;
using torch::Library;

// Its logarithms overflow to infinity and its gradients vanish in half precision, and the input was rounded before it
// could be cast up; the fused form with logits has neither problem.
Tensor refuse_binary_cross_entropy(const Tensor& /*self*/, const Tensor& /*target*/,
                                   const std::optional<Tensor>& /*weight*/, int64_t /*reduction*/) {
  TORCH_CHECK(false,
              "binary_cross_entropy (torch.nn.BCELoss) is not safe under autocast on an openreg "
              "device: its argument, a probability, loses too much in half precision. Let the model "
              "return logits and use binary_cross_entropy_with_logits (torch.nn.BCEWithLogitsLoss), "
              "or compute the loss in float32 inside torch.autocast(\"openreg\", enabled=False).");
}

// Products: the arguments become the autocast type. Casts of float32 parameters are kept until the outermost context
// ends, so that a weight used twice is cast once.
void register_lower_precision_rules(Library& m) {
#define OPENREG_RULE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(OPENREG_RULE)
  // On CUDA's list, but in no macro, as the other devices do without them. They have no kernel here; with the rules,
  // the lists are equal without exception, and a test can say so.
  OPENREG_RULE(cudnn_convolution)
  OPENREG_RULE(cudnn_convolution_transpose)
#undef OPENREG_RULE
}

// What loses too much, or overflows, in half precision: the arguments become float32.
void register_float32_rules(Library& m) {
#define OPENREG_RULE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(OPENREG_RULE)
#if OPENREG_TORCH_HAS_MATRIX_SQRTH
  OPENREG_RULE(linalg_matrix_sqrth)  // on CUDA's list, but in no macro
#endif
#undef OPENREG_RULE
}

// The same for operators with an argument `dtype`: it becomes float32, unless the caller names a type.
void register_float32_result_rules(Library& m) {
#define OPENREG_RULE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
  AT_FORALL_FP32_SET_OPT_DTYPE(OPENREG_RULE)
#undef OPENREG_RULE
}

// The same for overloads without such an argument: they call the overload that has one. The list names the policy.
void register_float32_overload_rules(Library& m) {
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
}

// Operators that refuse mixed types: the arguments become the widest type among them.
void register_promotion_rules(Library& m) {
#define OPENREG_RULE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_PROMOTE(OPENREG_RULE)
#undef OPENREG_RULE
}

// Only the loss itself: the gradient of one that was computed outside the context may be computed inside.
void register_refusals(Library& m) {
  m.impl("binary_cross_entropy", &refuse_binary_cross_entropy);
}

// An operator without a rule runs in the types it is given.
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
