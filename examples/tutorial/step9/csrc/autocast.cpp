// SPDX-License-Identifier: BSD-3-Clause
// Mixed precision: the operators that run in half precision under torch.autocast, and those that run in float32.
// The lists are PyTorch's own; CUDA uses the same, and refuses binary_cross_entropy as well.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace pocket {

namespace {

// The lists contain signatures with these names.
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

// An operator that is in no list runs in the dtypes of its operands.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}

// Its operand, a probability, has been rounded before a cast to float32 could help.
Tensor refuse_binary_cross_entropy(const Tensor& /*self*/, const Tensor& /*target*/,
                                   const std::optional<Tensor>& /*weight*/, int64_t /*reduction*/) {
  TORCH_CHECK(false, "binary_cross_entropy is unsafe under autocast on pocket; let the model return logits and use ",
              "binary_cross_entropy_with_logits, or compute the loss inside torch.autocast('pocket', enabled=False)");
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  // Products: half precision is faster.
#define POCKET_RULE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(POCKET_RULE)
#undef POCKET_RULE
  // Sums, exponentials, losses: half precision loses too much.
#define POCKET_RULE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(POCKET_RULE)
#undef POCKET_RULE
#define POCKET_RULE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
  AT_FORALL_FP32_SET_OPT_DTYPE(POCKET_RULE)
#undef POCKET_RULE
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  // Operands of several types: the widest.
#define POCKET_RULE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_PROMOTE(POCKET_RULE)
#undef POCKET_RULE
  m.impl("binary_cross_entropy", TORCH_FN(refuse_binary_cross_entropy));
}

}  // namespace

}  // namespace pocket
