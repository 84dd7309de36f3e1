// SPDX-License-Identifier: BSD-3-Clause
// The autocast rules: which operators cast their arguments, and to what. Source:
// ATen/autocast_mode.h, whose operator lists are those of every device with autocast, CUDA
// included.
#include "autocast.h"

#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace openreg::amp {

namespace {

// PyTorch's lists write signatures with these names.
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;
using torch::Library;

// Its logarithms overflow to infinity and its gradients vanish in half precision, and the input was
// rounded before it could be cast up; the fused form with logits has neither problem.
Tensor refuse_binary_cross_entropy(const Tensor& /*self*/, const Tensor& /*target*/,
                                   const std::optional<Tensor>& /*weight*/, int64_t /*reduction*/) {
  TORCH_CHECK(false,
              "binary_cross_entropy (torch.nn.BCELoss) is not safe under autocast on an openreg "
              "device: its argument, a probability, loses too much in half precision. Let the model "
              "return logits and use binary_cross_entropy_with_logits (torch.nn.BCEWithLogitsLoss), "
              "or compute the loss in float32 inside torch.autocast(\"openreg\", enabled=False).");
}

// PyTorch's macros write `m.impl(...)`, hence the name of the parameter. Their policies differ in
// what an operator's floating-point arguments become.
void register_rules(Library& m) {
  // The autocast type: products, where half precision pays.
#define OPENREG_RULE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(OPENREG_RULE)
#undef OPENREG_RULE

  // float32: what loses too much, or overflows, in half precision.
#define OPENREG_RULE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(OPENREG_RULE)
#undef OPENREG_RULE

  // float32 as the result's type, unless the caller names one.
#define OPENREG_RULE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
  AT_FORALL_FP32_SET_OPT_DTYPE(OPENREG_RULE)
#undef OPENREG_RULE

  // The same for overloads without such an argument, through an overload that has it.
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)

  // The widest type among the arguments.
#define OPENREG_RULE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_PROMOTE(OPENREG_RULE)
#undef OPENREG_RULE

  m.impl("binary_cross_entropy", &refuse_binary_cross_entropy);
}

}  // namespace

void register_autocast_rules() {
  constexpr auto kKey = c10::DispatchKey::AutocastPrivateUse1;
  // Never destroyed: at exit, tensors may still be in use when static objects are gone.
  static auto* const others = new Library(Library::IMPL, "_", kKey, __FILE__, __LINE__);
  static auto* const rules = new Library(Library::IMPL, "aten", kKey, __FILE__, __LINE__);
  // An operator without a rule runs in the types it is given.
  others->fallback(torch::CppFunction::makeFallthrough());
  register_rules(*rules);
}

}  // namespace openreg::amp
